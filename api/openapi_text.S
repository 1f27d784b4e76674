/* The description of the API as it is written, as one string; see api/openapi.h. */
	.section .rodata
	.globl openapi_text
openapi_text:
	.incbin "api/openapi.json"
	.byte 0
	.section .note.GNU-stack,"",@progbits
