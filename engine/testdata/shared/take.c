// A process of another language beside Go's: it attaches to a shared table, finds the records of keys, and takes a token
// from each in turn, as docs/shared-format.md says. It makes no records, sweeps nothing and changes no policy.
//
//	take FILE TALLY NOW KEYS    by a function's time, for the keys "key 0" to "key KEYS-1"
//
// TALLY has a word for each key, which counts what was admitted, one that counts decisions, and one that is not 0 when
// all shall stop.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef uint64_t u64;
typedef _Atomic u64 word;
enum { PAGE = 4096, HEADER = 10 * PAGE, LIVE = 4, WINDOW = 32 };
static const u64 MASK54 = (1ull << 54) - 1, SKEW = 1ull << 50, LOCKS = 1ull << 50, TIER = 15ull << 20;

static void die(const char *why) { fprintf(stderr, "take: %s\n", why); exit(1); }
static u64 ceil_div(u64 a, u64 b) { return a / b + (a % b != 0); }
static u64 high(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
static u64 fold(u64 a, u64 b) { return high(a, b) ^ a * b; }
static u64 get(const unsigned char *p, int n) { u64 v = 0; memcpy(&v, p, n); return v; }

static u64 hash(const u64 s[4], const unsigned char *p, u64 n) {
	u64 sum = s[0], a = 0, b = 0;
	if (n > 16) {
		const unsigned char *q = p;
		for (u64 left = n; left > 16; q += 16, left -= 16) sum = fold(get(q, 8) ^ s[1], get(q + 8, 8) ^ sum);
		a = get(p + n - 16, 8), b = get(p + n - 8, 8);
	} else if (n >= 8) a = get(p, 8), b = get(p + n - 8, 8);
	else if (n >= 4) a = get(p, 4), b = get(p + n - 4, 4);
	else if (n > 0) a = (u64)p[0] << 16 | (u64)p[n / 2] << 8 | p[n - 1];
	return fold(s[2] ^ n, fold(a ^ s[3], b ^ sum));
}

static u64 field(const char *text, const char *name) {
	const char *at = strstr(text, name);
	if (!at) die(name);
	return strtoull(at + strlen(name), 0, 10);
}

int main(int argc, char **argv) {
	if (argc != 5) die("want FILE TALLY NOW KEYS");
	int fd = open(argv[1], O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct stat info;
	if (fd < 0 || fstat(fd, &info)) die("open");
	unsigned char *file = mmap(0, info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED) die("map");
	// Page 0: what the file is. (Its checksum is not looked at here.)
	if (memcmp(file, "weirtabl", 8) || get(file + 8, 8) != 0x0102030405060708 || get(file + 16, 8) != 8 ||
		get(file + 24, 8) != (u64)info.st_size) die("another kind of file");
	char text[PAGE] = {0};
	memcpy(text, file + 128, get(file + 32, 8));
	u64 keys = field(text, "MaxKeys: "), shards = field(text, "Shards: ");

	// A seat: a lock that the kernel gives back, and then the words of the seat.
	int seat = 0;
	for (; ; seat++) {
		struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCKS + 1 + seat, .l_len = 1};
		if (seat == 1024) die("no seat");
		if (!fcntl(fd, F_OFD_SETLK, &l)) break;
		if (errno != EAGAIN && errno != EACCES) die("lock");
	}
	word *own = (word *)(file + 2 * PAGE + 32 * seat);
	atomic_store(&own[1], getpid());
	atomic_store(&own[0], atomic_load(&own[0]) % ((1ull << 44) - 1) + 1);

	// Where the parts are.
	u64 wanted = keys + keys / 3 * 2 + (keys % 3 * 2 + 2) / 3;
	u64 homes = ceil_div(ceil_div(wanted, shards), 4), lines = ceil_div((homes - 1) * 4 + WINDOW, 4), slots = lines * 4 * shards;
	u64 sizes[] = {PAGE, PAGE, shards * 64, ceil_div(slots / 4, 16) * 8, ceil_div(slots / 4, 64) * 16, ceil_div(slots, 256 * 64) * 8};
	u64 at = HEADER;
	for (int i = 0; i < 6; i++) at += ceil_div(sizes[i], PAGE) * PAGE;
	if (at + ceil_div(slots * 16, PAGE) * PAGE != (u64)info.st_size) die("another layout");
	word *watermark = (word *)(file + HEADER), *planned = watermark + 1, *areas = (word *)(file + HEADER + PAGE);
	word *table = (word *)(file + at);

	u64 secret[4], derived[4];
	memcpy(secret, file + 40, 32);
	for (u64 i = 0; i < 4; i++) {
		unsigned char number[16] = {0}; // the kind of key, 0 for texts, and which word
		number[8] = i;
		derived[i] = hash(secret, number, 16);
	}
	int tally_fd = open(argv[2], O_RDWR);
	u64 n = strtoull(argv[4], 0, 10), now = strtoull(argv[3], 0, 10);
	word *tally = mmap(0, (n + 2) * 8, PROT_READ | PROT_WRITE, MAP_SHARED, tally_fd, 0);
	if (tally == MAP_FAILED) die("tally");
	u64 prints[1024];
	for (u64 i = 0; i < n && i < 1024; i++) {
		char key[32];
		prints[i] = hash(derived, (unsigned char *)key, sprintf(key, "key %llu", (unsigned long long)i)) & ~TIER;
	}
	puts("ready");
	fflush(stdout);
	for (u64 round = getpid(); !atomic_load(&tally[n + 1]); round++) {
		u64 print = prints[round % n], home = (print & (shards - 1)) * lines * 4 + high(print, homes * 4);
		for (u64 i = 0; i < WINDOW;) {
			word *sl = table + ((home & ~3ull) + (i ^ (home & 3))) * 2;
			u64 s = atomic_load(&sl[0]); // before the key: R1
			if (atomic_load(&sl[1]) != print || s >> 61 < LIVE) {
				if (!s) break; // R5
				i++;
				continue;
			}
			u64 plan = atomic_load(planned), mark = atomic_load(watermark); // after the state: R9, R21
			if (s >> 61 != LIVE + (plan - 1) % 2 || now - mark > SKEW) break; // not for this program: R7
			// Policy 1, that of the limiter: 7 numbers behind the 7 of the base; its period is a second, its rate 1. A tick is a
			// nanosecond, and a token 1e9 of them.
			word *policy = areas + plan % 2 * 128 + 1 + 7;
			u64 limit = atomic_load(&policy[3]) * 1000000000ull, cost = 1000000000ull;
			if (atomic_load(planned) != plan) continue;
			u64 owed = (s - now) & MASK54;
			if (owed > (1ull << 51) + 1 + SKEW) owed = 0; // past
			if (owed + cost > limit) {
				if (atomic_load(&sl[0]) == s) break; // refused: R2
			} else if (atomic_compare_exchange_strong(&sl[0], &s, (s & ~MASK54) | ((now + owed + cost) & MASK54))) {
				atomic_fetch_add(&tally[round % n], 1);
				break;
			}
		}
		atomic_fetch_add(&tally[n], 1);
	}
	return 0;
}
