/* The Restart Manager of Wine 8 reports no programs. This one reports those that have files open. */
#include <windows.h>
#include <winternl.h>
#include <restartmanager.h>
#include <stdlib.h>
#include <string.h>

#define HANDLES 64 /* SystemExtendedHandleInformation */
#define MOST 1024  /* files of a session, and processes */

typedef struct {
    PVOID object;
    ULONG_PTR process;
    ULONG_PTR handle;
    ULONG access;
    USHORT creator;
    USHORT type;
    ULONG attributes;
    ULONG reserved;
} Handle;

typedef struct {
    ULONG_PTR count;
    ULONG_PTR reserved;
    Handle handles[];
} Handles;

static BY_HANDLE_FILE_INFORMATION files[MOST];
static UINT file_count;

DWORD WINAPI RmStartSession(DWORD *session, DWORD flags, WCHAR *key) {
    (void)flags;
    for (int at = 0; at < CCH_RM_SESSION_KEY; at++) key[at] = L'0';
    key[CCH_RM_SESSION_KEY] = 0;
    file_count = 0;
    *session = 7;
    return ERROR_SUCCESS;
}

DWORD WINAPI RmEndSession(DWORD session) {
    return session == 7 ? ERROR_SUCCESS : ERROR_INVALID_HANDLE;
}

DWORD WINAPI RmRegisterResources(DWORD session, UINT count, LPCWSTR *names, UINT applications,
                                 RM_UNIQUE_PROCESS *processes, UINT services, LPCWSTR *service_names) {
    (void)applications, (void)processes, (void)services, (void)service_names;
    if (session != 7 || file_count + count > MOST) return ERROR_BAD_ARGUMENTS;
    for (UINT at = 0; at < count; at++) {
        /* No right to read or write: such a handle is in nobody's way. */
        HANDLE file = CreateFileW(names[at], FILE_READ_ATTRIBUTES,
                                  FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                                  OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
        if (file == INVALID_HANDLE_VALUE) continue;
        file_count += !!GetFileInformationByHandle(file, &files[file_count]);
        CloseHandle(file);
    }
    return ERROR_SUCCESS;
}

static BOOL is_asked_for(HANDLE file) {
    BY_HANDLE_FILE_INFORMATION found;
    if (GetFileType(file) != FILE_TYPE_DISK || !GetFileInformationByHandle(file, &found)) return FALSE;
    for (UINT at = 0; at < file_count; at++)
        if (found.dwVolumeSerialNumber == files[at].dwVolumeSerialNumber &&
            found.nFileIndexHigh == files[at].nFileIndexHigh &&
            found.nFileIndexLow == files[at].nFileIndexLow)
            return TRUE;
    return FALSE;
}

static Handles *list_handles(void) {
    ULONG size = 1 << 16, needed;
    Handles *all = NULL;
    NTSTATUS status;
    do {
        size *= 2;
        all = realloc(all, size);
        status = NtQuerySystemInformation((SYSTEM_INFORMATION_CLASS)HANDLES, all, size, &needed);
    } while (status == (NTSTATUS)0xC0000004); /* STATUS_INFO_LENGTH_MISMATCH */
    if (!status) return all;
    free(all);
    return NULL;
}

static UINT add_process(DWORD *found, UINT count, DWORD process) {
    for (UINT at = 0; at < count; at++)
        if (found[at] == process) return count;
    if (count < MOST) found[count++] = process;
    return count;
}

static UINT find_processes(DWORD *found) {
    Handles *all = list_handles();
    UINT count = 0;
    DWORD opened = 0;
    HANDLE process = NULL;
    for (ULONG_PTR at = 0; all && at < all->count; at++) {
        Handle *one = &all->handles[at];
        HANDLE copy;
        if (opened != one->process) {
            if (process) CloseHandle(process);
            opened = (DWORD)one->process;
            process = OpenProcess(PROCESS_DUP_HANDLE, FALSE, opened);
        }
        if (!process || !DuplicateHandle(process, (HANDLE)one->handle, GetCurrentProcess(), &copy, 0,
                                         FALSE, DUPLICATE_SAME_ACCESS))
            continue;
        if (is_asked_for(copy)) count = add_process(found, count, opened);
        CloseHandle(copy);
    }
    if (process) CloseHandle(process);
    free(all);
    return count;
}

DWORD WINAPI RmGetList(DWORD session, UINT *needed, UINT *count, RM_PROCESS_INFO *programs,
                       DWORD *reasons) {
    DWORD found[MOST];
    for (UINT at = 0; at < file_count; at++)
        if (files[at].dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) return ERROR_ACCESS_DENIED;
    if (session != 7) return ERROR_INVALID_HANDLE;
    *reasons = RmRebootReasonNone;
    *needed = find_processes(found);
    if (*count < *needed) return ERROR_MORE_DATA;
    *count = *needed;
    memset(programs, 0, *needed * sizeof *programs);
    for (UINT at = 0; at < *needed; at++) programs[at].Process.dwProcessId = found[at];
    return ERROR_SUCCESS;
}
