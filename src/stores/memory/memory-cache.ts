import { checkMembers, type MemberNames } from '../../core/known-members.ts'
import type { ResponseCache } from '../response-cache.ts'
import { MapCursor } from './map-scans.ts'

/** Options of `memoryCache`. */
export interface MemoryCacheOptions {
  /** Maximum memory for entries, in bytes. Default 64 MiB. */
  readonly maxBytes?: number | undefined
}

const MEMORY_CACHE_OPTIONS = { maxBytes: true } satisfies MemberNames<MemoryCacheOptions>

/** Cache in this process. */
export interface MemoryCache extends ResponseCache {
  /** Memory of all entries, in bytes. */
  readonly byteLength: number
  /** Number of entries. */
  readonly size: number
}

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

/** Memory of an entry in addition to its bytes: the key, the map's slot, the objects. */
const ENTRY_OVERHEAD_BYTES = 400

interface Kept {
  readonly bytes: Uint8Array
  readonly untilMs: number
}

/**
 * Creates a response cache in memory with a maximum size in bytes; the least recently read entries are evicted first. Every
 * process has its own.
 * @throws TypeError for a maximum that is not a positive number.
 */
export function memoryCache(options: MemoryCacheOptions = {}): MemoryCache {
  checkMembers(options, MEMORY_CACHE_OPTIONS, 'memoryCache')
  const { maxBytes = DEFAULT_MAX_BYTES } = options
  if (!(maxBytes > 0)) throw new TypeError('memoryCache: maxBytes must be a positive number')
  // Ordered by their last use.
  const entries = new Map<string, Kept>()
  const oldest = new MapCursor(entries)
  const generations = new Map<string, number>()
  let byteLength = 0

  function forget(key: string, { bytes }: Kept): void {
    entries.delete(key)
    byteLength -= sizeOf(key, bytes)
  }

  return {
    get byteLength() {
      return byteLength
    },
    get size() {
      return entries.size
    },

    get(key, nowMs) {
      const kept = entries.get(key)
      if (kept === undefined) return undefined
      if (kept.untilMs <= nowMs) {
        forget(key, kept)
        return undefined
      }
      entries.delete(key)
      entries.set(key, kept)
      return kept.bytes
    },

    set(key, entry, keepMs, nowMs) {
      const before = entries.get(key)
      if (before !== undefined) forget(key, before)
      // A view of a larger buffer would retain all of it.
      const bytes = entry.buffer.byteLength === entry.byteLength ? entry : new Uint8Array(entry)
      const size = sizeOf(key, bytes)
      if (size > maxBytes || keepMs <= 0) return
      while (byteLength + size > maxBytes) {
        const next = oldest.next()
        if (next === undefined) break
        forget(next[0], next[1])
      }
      entries.set(key, { bytes, untilMs: nowMs + keepMs })
      byteLength += size
    },

    generation: (scope) => generations.get(scope) ?? 0,

    clear(scope) {
      generations.set(scope, (generations.get(scope) ?? 0) + 1)
    },
  }
}

function sizeOf(key: string, bytes: Uint8Array): number {
  return key.length + bytes.byteLength + ENTRY_OVERHEAD_BYTES
}
