/* A libnvidia-ml without a GPU: the functions that gpudiag calls, answering as a scenario says.
 *
 * NVML_STUB names the scenario, lines of cells that a tab separates: WHO KEY VALUE...
 * WHO is the index of a GPU, or "system". The first call asks for the first VALUE, the second for the second, and so
 * on; the last one answers all later calls. A VALUE is a number or a text, "!15" for error 15, or "restart": the driver
 * restarts, and every function fails until the library is initialized again. "85~300" is 85 after 300 ms.
 * A key that the scenario lacks is not supported. NVML_STUB_CALLS names a file that each call is noted in.
 *
 * Layouts and symbol versions are those of NVIDIA's nvml.h; with -DNVML_STUB_R470, those of driver 470.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 6, INSUFFICIENT_SIZE };
enum { VERSION_MISMATCH = 25 };
enum { MOST_GPUS = 8, SYSTEM = MOST_GPUS, MOST_KEYS = 40, MOST_VALUES = 64 };
#define NOT_AVAILABLE 0xFFFFFFFFFFFFFFFFull

struct answer {
    const char *key;
    const char *values[MOST_VALUES];
    int n, next;
};
struct part {
    struct answer answers[MOST_KEYS];
    int n;
};
struct device {
    int gpu, generation;
};
typedef struct device *device_t;

static struct part parts[MOST_GPUS + 1];
static int generation; /* of the initialized library, 0 where it is not */
static int generations;
static const char *calls_path;

/* The scenario */

static void take_line(char *line)
{
    char *who = strtok(line, "\t\n"), *key = strtok(NULL, "\t\n"), *value;
    if (!who || !key)
        return;
    struct part *part = &parts[strcmp(who, "system") ? atoi(who) : SYSTEM];
    struct answer *answer = &part->answers[part->n++];
    answer->key = strdup(key);
    while ((value = strtok(NULL, "\t\n")))
        answer->values[answer->n++] = strdup(value);
}

static void read_scenario(void)
{
    const char *path = getenv("NVML_STUB");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[4096];
    if (!file)
        abort();
    while (fgets(line, sizeof line, file))
        take_line(line);
    fclose(file);
    calls_path = getenv("NVML_STUB_CALLS");
}

static void note(int of, const char *key)
{
    FILE *file = calls_path ? fopen(calls_path, "a") : NULL;
    if (file) {
        fprintf(file, "%d %s\n", of, key);
        fclose(file);
    }
}

/* What the scenario answers to this call: a code, and with SUCCESS a text. */
static int asked(int of, const char *key, const char **text)
{
    struct answer *answer = NULL;
    note(of, key);
    for (int i = 0; i < parts[of].n; i++)
        if (!strcmp(parts[of].answers[i].key, key))
            answer = &parts[of].answers[i];
    if (!answer || !answer->n)
        return NOT_SUPPORTED;
    *text = answer->values[answer->next];
    answer->next += answer->next < answer->n - 1;
    const char *pause = strrchr(*text, '~');
    if (pause)
        usleep(1000 * (useconds_t)atoi(pause + 1));
    if (!strcmp(*text, "restart")) {
        generation = 0;
        return UNINITIALIZED;
    }
    return **text == '!' ? atoi(*text + 1) : SUCCESS;
}

/* The same of a GPU. A handle from before a restart is no handle. */
static int asked_of(device_t device, const char *key, const char **text)
{
    if (!generation)
        return UNINITIALIZED;
    if (!device || device->generation != generation)
        return INVALID_ARGUMENT;
    return asked(device->gpu, key, text);
}

static int whole(device_t device, const char *key, unsigned long long *value)
{
    const char *text;
    int code = asked_of(device, key, &text);
    if (code == SUCCESS)
        *value = strtoull(text, NULL, 10);
    return code;
}

static int number(device_t device, const char *key, unsigned *value)
{
    unsigned long long found;
    int code = whole(device, key, &found);
    if (code == SUCCESS)
        *value = (unsigned)found;
    return code;
}

static int copied(const char *text, char *into, unsigned size)
{
    if (strlen(text) + 1 > size)
        return INSUFFICIENT_SIZE;
    strcpy(into, text);
    return SUCCESS;
}

static int words(device_t device, const char *key, char *into, unsigned size)
{
    const char *text;
    int code = asked_of(device, key, &text);
    return code == SUCCESS ? copied(text, into, size) : code;
}

/* The library */

int nvmlInitWithFlags(unsigned flags)
{
    const char *text;
    (void)flags;
    if (!parts[SYSTEM].n)
        read_scenario();
    int code = asked(SYSTEM, "init", &text);
    if (code == SUCCESS)
        generation = ++generations;
    return code;
}

int nvmlShutdown(void)
{
    note(SYSTEM, "shutdown");
    if (!generation)
        return UNINITIALIZED;
    generation = 0;
    return SUCCESS;
}

const char *nvmlErrorString(int code)
{
    static char text[40];
    snprintf(text, sizeof text, "error %d of the stub", code);
    return text;
}

int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    const char *text;
    int code = generation ? asked(SYSTEM, "driver", &text) : UNINITIALIZED;
    return code == SUCCESS ? copied(text, version, size) : code;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    if (!generation)
        return UNINITIALIZED;
    for (*count = 0; *count < MOST_GPUS && parts[*count].n; ++*count)
        ;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device)
{
    const char *text;
    if (!generation)
        return UNINITIALIZED;
    if (index >= MOST_GPUS || !parts[index].n)
        return INVALID_ARGUMENT;
    int code = asked((int)index, "handle", &text);
    if (code != SUCCESS && code != NOT_SUPPORTED) /* a scenario states a handle only where it fails */
        return code;
    *device = malloc(sizeof **device);
    **device = (struct device){(int)index, generation};
    return SUCCESS;
}

/* What a GPU is */

int nvmlDeviceGetUUID(device_t device, char *uuid, unsigned size) { return words(device, "uuid", uuid, size); }
int nvmlDeviceGetName(device_t device, char *name, unsigned size) { return words(device, "name", name, size); }

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

int nvmlDeviceGetPciInfo_v3(device_t device, struct pci *pci)
{
    memset(pci, 0, sizeof *pci);
    return words(device, "bus_id", pci->bus_id, sizeof pci->bus_id);
}

int nvmlDeviceGetMigMode(device_t device, unsigned *current, unsigned *pending)
{
    int code = number(device, "mig", current);
    *pending = *current;
    return code;
}

/* Readings */

#define READS(FUNCTION, KEY) \
    int FUNCTION(device_t device, unsigned *value) { return number(device, KEY, value); }
#define READS_WIDE(FUNCTION, KEY) \
    int FUNCTION(device_t device, unsigned long long *value) { return whole(device, KEY, value); }
#define READS_WITH_PERIOD(FUNCTION, KEY) \
    int FUNCTION(device_t device, unsigned *value, unsigned *period_us) \
    { \
        *period_us = 100000; \
        return number(device, KEY, value); \
    }

READS(nvmlDeviceGetPowerUsage, "power")
READS(nvmlDeviceGetEnforcedPowerLimit, "power_limit")
READS(nvmlDeviceGetFanSpeed, "fan")
READS(nvmlDeviceGetPerformanceState, "pstate")
READS_WIDE(nvmlDeviceGetTotalEnergyConsumption, "energy")
READS_WIDE(nvmlDeviceGetCurrentClocksThrottleReasons, "reasons")
#ifndef NVML_STUB_R470
READS_WIDE(nvmlDeviceGetCurrentClocksEventReasons, "event_reasons")
#endif

int nvmlDeviceGetTemperature(device_t device, int sensor, unsigned *value)
{
    return sensor == 0 ? number(device, "temp", value) : INVALID_ARGUMENT;
}

int nvmlDeviceGetClockInfo(device_t device, int clock, unsigned *value)
{
    return number(device, clock == 1 ? "sm_clock" : clock == 2 ? "mem_clock" : "other_clock", value);
}

int nvmlDeviceGetPcieThroughput(device_t device, int counter, unsigned *value)
{
    return number(device, counter == 0 ? "pcie_tx" : "pcie_rx", value);
}

READS_WITH_PERIOD(nvmlDeviceGetEncoderUtilization, "encoder")
READS_WITH_PERIOD(nvmlDeviceGetDecoderUtilization, "decoder")

struct rates {
    unsigned gpu, memory;
};

int nvmlDeviceGetUtilizationRates(device_t device, struct rates *rates)
{
    int code = number(device, "util", &rates->gpu);
    return code == SUCCESS ? number(device, "mem_util", &rates->memory) : code;
}

struct memory {
    unsigned long long total, free, used;
};

/* "Used" holds what the driver reserves as well. */
int nvmlDeviceGetMemoryInfo(device_t device, struct memory *memory)
{
    unsigned long long reserved = 0;
    int code = whole(device, "mem_total", &memory->total);
    if (code == SUCCESS && (code = whole(device, "mem_used", &memory->used)) == SUCCESS) {
        whole(device, "mem_reserved", &reserved);
        memory->used += reserved;
        memory->free = memory->total - memory->used;
    }
    return code;
}

#ifndef NVML_STUB_R470
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

int nvmlDeviceGetMemoryInfo_v2(device_t device, struct memory_v2 *memory)
{
    if (memory->version != (sizeof *memory | 2u << 24))
        return VERSION_MISMATCH;
    int code = whole(device, "mem_total", &memory->total);
    if (code == SUCCESS && (code = whole(device, "mem_used", &memory->used)) == SUCCESS
        && (code = whole(device, "mem_reserved", &memory->reserved)) == SUCCESS)
        memory->free = memory->total - memory->used - memory->reserved;
    return code;
}
#endif

struct field {
    unsigned id, scope;
    long long timestamp, latency_us;
    unsigned type;
    int code;
    union {
        double real;
        unsigned small;
        unsigned long long wide;
    } value;
};

int nvmlDeviceGetFieldValues(device_t device, int n, struct field *fields)
{
    char key[24];
    if (!generation)
        return UNINITIALIZED;
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "field_%u", fields[i].id);
        fields[i].type = 1; /* NVML_VALUE_TYPE_UNSIGNED_INT */
        fields[i].value.wide = 0x1234567800000000ull; /* what of a union is not the value is no zero */
        fields[i].code = number(device, key, &fields[i].value.small);
    }
    return SUCCESS;
}

/* Processes: "4242:3145728" is a pid and its bytes, "4242:N/A" one whose memory is hidden; a blank separates them, and
 * "none" is an empty list. A list is asked for twice: first for its size.
 */

static const char *first(int code, const char *text) { return code == SUCCESS && strcmp(text, "none") ? text : NULL; }

static const char *after(const char *entry)
{
    const char *blank = strchr(entry, ' ');
    return blank ? blank + 1 : NULL;
}

struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

static int processes(device_t device, const char *key, unsigned *count, struct process *into)
{
    const char *text = "";
    unsigned n = 0, room = *count;
    int code = asked_of(device, key, &text);
    for (const char *at = first(code, text); at; at = after(at), n++) {
        const char *colon = strchr(at, ':');
        unsigned long long used = colon[1] == 'N' ? NOT_AVAILABLE : strtoull(colon + 1, NULL, 10);
        if (n < room && into)
            into[n] = (struct process){(unsigned)atoi(at), used, 0xFFFFFFFF, 0xFFFFFFFF};
    }
    *count = n;
    return code != SUCCESS ? code : n > room ? INSUFFICIENT_SIZE : SUCCESS;
}

#define LISTS(FUNCTION, KEY) \
    int FUNCTION(device_t device, unsigned *count, struct process *into) { return processes(device, KEY, count, into); }
LISTS(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
LISTS(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")
#ifndef NVML_STUB_R470
LISTS(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
LISTS(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
#endif

struct share {
    unsigned pid;
    unsigned long long timestamp_us;
    unsigned sm, memory, encoder, decoder;
};

/* "4242:33" is a pid and its SM share; one sample a process, each newer than all before. */
int nvmlDeviceGetProcessUtilization(device_t device, struct share *into, unsigned *count, unsigned long long since_us)
{
    static unsigned long long now_us = 1000000;
    const char *text = "";
    unsigned n = 0, room = *count;
    int code = asked_of(device, "shares", &text);
    for (const char *at = first(code, text); at; at = after(at), n++)
        if (n < room && into)
            into[n] = (struct share){(unsigned)atoi(at), now_us += 10, (unsigned)atoi(strchr(at, ':') + 1), 0, 0, 0};
    *count = n;
    (void)since_us;
    return code != SUCCESS ? code : !n ? NOT_FOUND : n > room ? INSUFFICIENT_SIZE : SUCCESS;
}
