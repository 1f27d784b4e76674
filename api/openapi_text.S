/* The description of the API as it is written, embedded; see api/openapi.h. */
	.section .rodata
	.globl openapi_start, openapi_end
openapi_start:
	.incbin "api/openapi.json"
openapi_end:
	.byte 0
	.section .note.GNU-stack,"",@progbits
