// A test that never asks for its happenings must not make the list grow without end.
const MAX_KEPT = 10_000

/** Things that happen, each handed to one asker, whichever of the two comes first. */
export interface AwaitableQueue<Item> {
  push(item: Item): void
  /** The oldest item that nobody has taken, or the next one to come. */
  next(): Promise<Item>
  /** Forgets the items that nobody has taken. */
  clear(): void
}

/** Makes an empty queue. */
export function awaitableQueue<Item>(): AwaitableQueue<Item> {
  const items: Item[] = []
  const askers: ((item: Item) => void)[] = []
  return {
    push(item) {
      const asker = askers.shift()
      if (asker !== undefined) return asker(item)
      items.push(item)
      if (items.length > MAX_KEPT) items.shift()
    },
    next() {
      if (items.length > 0) return Promise.resolve(items.shift() as Item)
      return new Promise((resolve) => askers.push(resolve))
    },
    clear() {
      items.length = 0
    },
  }
}
