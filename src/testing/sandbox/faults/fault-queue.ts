import type { Fault, QueuedFault } from './fault.ts'
import { faultMarks } from './fault-marks.ts'

// Marks with `times` are counted by their text; the oldest are forgotten first.
const MAX_COUNTED_MARKS = 1000

/** The faults that wait for calls. */
export interface FaultQueue {
  add(fault: QueuedFault): void
  /** The faults that strike this call: the oldest queued one that fits, and those marked in its text. */
  take(vendor: string, operation: string, promptText: string): Fault[]
  clear(): void
}

/** Makes an empty queue. */
export function faultQueue(): FaultQueue {
  let waiting: { readonly fault: QueuedFault; timesLeft: number }[] = []
  const strikes = new Map<string, number>()

  const strikesAgain = (mark: string, times: number): boolean => {
    const struck = strikes.get(mark) ?? 0
    strikes.delete(mark)
    strikes.set(mark, struck + 1)
    const [oldest] = strikes.keys()
    if (strikes.size > MAX_COUNTED_MARKS && oldest !== undefined) strikes.delete(oldest)
    return struck < times
  }

  return {
    add(fault) {
      waiting.push({ fault, timesLeft: fault.times ?? 1 })
    },
    take(vendor, operation, promptText) {
      const faults: Fault[] = []
      const queued = waiting.find(
        ({ fault }) => (fault.vendor ?? vendor) === vendor && (fault.operation ?? operation) === operation,
      )
      if (queued !== undefined) {
        faults.push(queued.fault)
        queued.timesLeft--
        waiting = waiting.filter((entry) => entry.timesLeft > 0)
      }
      for (const mark of faultMarks(promptText)) {
        if (mark.times === undefined || strikesAgain(mark.text, mark.times)) faults.push(mark.fault)
      }
      return faults
    },
    clear() {
      waiting = []
      strikes.clear()
    },
  }
}
