/** Entry that receives a share of the keys by weight. */
export interface RendezvousEntry {
  /** Stable identifier. */
  readonly seed: number
  /** Positive weight. */
  readonly weight: number
}

/** Returns a 32-bit hash of a text (FNV-1a). Not for secrets. */
export function hashOfText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

/**
 * Picks the same entry for the same key as long as it is among the entries. If one is removed, only its keys move, and they
 * spread over the others by weight (highest random weight hashing).
 */
export function pickByKey<Entry extends RendezvousEntry>(entries: readonly [Entry, ...Entry[]], key: string): Entry {
  const hash = hashOfText(key)
  let picked: Entry = entries[0]
  let highest = Number.NEGATIVE_INFINITY
  for (const entry of entries) {
    const score = -entry.weight / Math.log(fractionOf(hash ^ entry.seed))
    if (score > highest) {
      highest = score
      picked = entry
    }
  }
  return picked
}

/** Maps a hash to the open interval from 0 to 1 (the finalizer of MurmurHash3). */
function fractionOf(hash: number): number {
  let mixed = hash
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  mixed ^= mixed >>> 16
  return ((mixed >>> 0) + 0.5) / 2 ** 32
}
