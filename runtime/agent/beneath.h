/* SPDX-License-Identifier: MIT */
/*
 * beneath.h - files below a folder that others change meanwhile: no path leads out of it.
 *
 * Paths are relative, without "." and ".."; "" is the folder itself. No component may be a symlink (ELOOP).
 * openat2(2) where there is one, else one component after the other.
 */
#ifndef BERTH_AGENT_BENEATH_H
#define BERTH_AGENT_BENEATH_H

/* As open(2) with O_CLOEXEC; the descriptor or -1. */
int beneath_open(int root, const char *path, int flags);

/* The folder, for *at() calls only (O_PATH). It and its parents are made where they are missing. */
int beneath_make(int root, const char *path);

#endif
