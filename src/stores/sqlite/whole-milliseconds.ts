/** A time as a column of whole numbers takes it: clocks and options may give fractions of a millisecond. */
export function wholeMilliseconds(timeMs: number): number {
  return Math.floor(timeMs)
}

/** The same for a time that may be absent; null is none. */
export function wholeMillisecondsOrNull(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : Math.floor(timeMs)
}
