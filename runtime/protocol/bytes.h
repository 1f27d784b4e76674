/* SPDX-License-Identifier: MIT */
/* bytes.h - big-endian integers in byte arrays. */
#ifndef BERTH_PROTOCOL_BYTES_H
#define BERTH_PROTOCOL_BYTES_H

#include <stdint.h>

static inline uint16_t bytes_get_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t bytes_get_u32(const uint8_t *at)
{
	return (uint32_t)bytes_get_u16(at) << 16 | bytes_get_u16(at + 2);
}

static inline uint64_t bytes_get_u64(const uint8_t *at)
{
	return (uint64_t)bytes_get_u32(at) << 32 | bytes_get_u32(at + 4);
}

static inline void bytes_put_u16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void bytes_put_u32(uint8_t *at, uint32_t value)
{
	bytes_put_u16(at, (uint16_t)(value >> 16));
	bytes_put_u16(at + 2, (uint16_t)value);
}

static inline void bytes_put_u64(uint8_t *at, uint64_t value)
{
	bytes_put_u32(at, (uint32_t)(value >> 32));
	bytes_put_u32(at + 4, (uint32_t)value);
}

#endif
