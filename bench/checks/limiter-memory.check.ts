import { expect, test } from 'vitest'
import { memoryRateLimiter } from '../../src/stores/memory/memory-limiters.ts'
import type { RateDecision } from '../../src/stores/rate-limiter.ts'
import { usedBytes } from './used-bytes.ts'

const NOW_MS = 1_750_000_000_000

test('a limiter keeps its memory bounded over a million distinct keys, and drained buckets stay drained', async () => {
  const limiter = memoryRateLimiter({ maxBuckets: 1_000 })
  limiter.take([{ bucket: 'tokens:busy', amount: 60, perMinute: 60 }], NOW_MS)
  const bytesBefore = await usedBytes()
  for (let index = 0; index < 1_000_000; index++)
    limiter.take([{ bucket: `requests:key_${index}`, amount: 1, perMinute: 600 }], NOW_MS)
  const grownBytes = (await usedBytes()) - bytesBefore

  const busy = limiter.take([{ bucket: 'tokens:busy', amount: 0, perMinute: 60 }], NOW_MS) as RateDecision
  expect(busy.buckets[0]?.remaining).toBe(0)
  // A million buckets would take more than 150 MB.
  expect(grownBytes).toBeLessThan(10 * 1024 * 1024)
})
