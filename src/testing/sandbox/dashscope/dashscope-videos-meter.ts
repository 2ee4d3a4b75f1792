/** Calls of each key within a second. */
export interface CallMeter {
  /** Counts a call. False when the key has had its calls of this second. */
  take(key: string, nowMs: number): boolean
  /** The most calls that one key made within one second, refused ones included. */
  readonly most: number
  /** Forgets all calls. */
  clear(): void
}

const WINDOW_MS = 1000
// The keys that have waited longest are forgotten first.
const MAX_KEYS = 1000

/** Calls made at the same millisecond. */
interface Moment {
  readonly atMs: number
  made: number
  taken: number
}

/**
 * Makes a meter. A second is any 1000 ms that end now, so no burst gets past it at the turn of a second. Refused calls do not
 * count against the limit.
 */
export function callMeter(callsPerSecond: number): CallMeter {
  const moments = new Map<string, Moment[]>()
  let most = 0
  return {
    take(key, nowMs) {
      const recent = (moments.get(key) ?? []).filter(({ atMs }) => nowMs - atMs < WINDOW_MS)
      moments.delete(key)
      moments.set(key, recent)
      const [longestWaiting] = moments.keys()
      if (moments.size > MAX_KEYS && longestWaiting !== undefined) moments.delete(longestWaiting)

      const latest = recent.at(-1)
      const moment = latest?.atMs === nowMs ? latest : { atMs: nowMs, made: 0, taken: 0 }
      if (moment !== latest) recent.push(moment)
      const mayCall = recent.reduce((sum, { taken }) => sum + taken, 0) < callsPerSecond
      moment.made++
      if (mayCall) moment.taken++
      most = Math.max(
        most,
        recent.reduce((sum, { made }) => sum + made, 0),
      )
      return mayCall
    },
    get most() {
      return most
    },
    clear() {
      moments.clear()
      most = 0
    },
  }
}
