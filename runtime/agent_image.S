/* SPDX-License-Identifier: MIT */
/* The static agent binary, embedded; see runtime/agent_image.h. */
	.section .rodata
	.globl agent_image_start, agent_image_end
	.balign 16
agent_image_start:
	.incbin AGENT_PATH
agent_image_end:
	.byte 0
	.section .note.GNU-stack,"",@progbits
