interface Window {
  startMs: number
  taken: number
}

/** How many tasks of each vendor account were taken in the window of time that runs. */
export class MemoryPollBudget {
  readonly #windows = new Map<string, Window>()

  /** What may still be taken. */
  left(vendorAccount: string, budget: { readonly takes: number; readonly windowMs: number }, nowMs: number): number {
    const startMs = Math.floor(nowMs / budget.windowMs) * budget.windowMs
    const window = this.#windows.get(vendorAccount)
    return budget.takes - (window?.startMs === startMs ? window.taken : 0)
  }

  count(vendorAccount: string, taken: number, windowMs: number, nowMs: number): void {
    if (taken === 0) return
    const startMs = Math.floor(nowMs / windowMs) * windowMs
    const window = this.#windows.get(vendorAccount)
    if (window?.startMs === startMs) window.taken += taken
    else this.#windows.set(vendorAccount, { startMs, taken })
  }
}
