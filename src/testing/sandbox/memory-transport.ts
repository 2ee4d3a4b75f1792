import type { Clock } from '../../core/clock.ts'
import type { Transport } from '../../transport/transport.ts'
import type { CallReceiver } from './delivery/vendor-connection.ts'
import { MemoryCall } from './memory-call.ts'

/** A transport that ends in this process, without sockets; and the calls it has under way. */
export interface MemoryTransport extends Transport {
  /** Calls under way. */
  readonly open: number
  /** Breaks all calls under way. */
  resetAll(): void
}

/** Makes a transport whose every call, whatever its origin, goes to `receive`. Keeps both time-outs of the contract. */
export function memoryTransport(receive: CallReceiver, clock: Clock): MemoryTransport {
  const open = new Set<MemoryCall>()
  let whenIdle: (() => void)[] = []
  const ended = (call: MemoryCall): void => {
    open.delete(call)
    if (open.size > 0) return
    for (const callback of whenIdle) callback()
    whenIdle = []
  }
  return {
    get open() {
      return open.size
    },
    resetAll() {
      for (const call of [...open]) call.reset()
    },
    send(request, handler) {
      const call = new MemoryCall(request, handler, clock, ended)
      open.add(call)
      // A later turn, because nothing may be called back before this method has returned.
      setImmediate(() => call.begin(receive))
      return call
    },
    close: () => (open.size === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve))),
  }
}
