// @ts-check

const MAX_WAIT_MS = 5_000

/**
 * Stores items by id until `take` returns them. `take` waits for an item and throws after five seconds.
 * @template Item
 * @typedef {{ put: (id: string, item: Item) => void, take: (id: string) => Promise<Item> }} Mailbox
 */

/**
 * Creates an empty mailbox.
 * @template Item
 * @param {string} contents name of the items, for the error message
 * @returns {Mailbox<Item>}
 */
export function createMailbox(contents) {
  /** @type {Map<string, Item>} */
  const items = new Map()
  const arrivals = new EventTarget()
  return {
    put(id, item) {
      items.set(id, item)
      arrivals.dispatchEvent(new Event(id))
    },
    async take(id) {
      const signal = AbortSignal.timeout(MAX_WAIT_MS)
      while (!items.has(id) && !signal.aborted) await nextOf(arrivals, id, signal)
      const item = items.get(id)
      if (item === undefined) throw new Error(`no ${contents} within ${MAX_WAIT_MS} ms`)
      return item
    },
  }
}

/**
 * Waits for an event, or for the signal.
 * @param {EventTarget} target
 * @param {string} type
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function nextOf(target, type, signal) {
  return new Promise((resolve) => {
    target.addEventListener(type, () => resolve(), { once: true, signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
