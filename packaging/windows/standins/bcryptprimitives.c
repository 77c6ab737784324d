/* Wine 8 lacks this library, which programs in Rust, such as cryptography, take random bytes from. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG size); /* RtlGenRandom of advapi32 */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T size) {
    return SystemFunction036(buffer, (ULONG)size);
}
