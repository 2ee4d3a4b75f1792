import type { EventListener, GatewayEvent } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import { emitTo } from '../pipeline/pipeline-context.ts'

/** Listeners to the events of one gateway: the host's, and those that handlers add. */
export class EventListeners {
  readonly #logger: Logger
  #all: readonly EventListener[]
  /** Notifies all listeners; `undefined` without listeners, so that no event is created. */
  current: EventListener | undefined

  constructor(host: EventListener | undefined, logger: Logger) {
    this.#logger = logger
    this.#all = host === undefined ? [] : [host]
    this.current = host
  }

  /** @returns a function that removes the listener. */
  add(listener: EventListener): () => void {
    // The same function may be added twice, and each is removed separately.
    const added: EventListener = (event) => listener(event)
    this.#set([...this.#all, added])
    return () => this.#set(this.#all.filter((other) => other !== added))
  }

  #set(listeners: readonly EventListener[]): void {
    this.#all = listeners
    const [only] = listeners
    this.current = listeners.length > 1 ? (event) => this.#tellEach(event) : only
  }

  /** An error in one listener does not affect the others. */
  #tellEach(event: GatewayEvent): void {
    for (const listener of this.#all) emitTo(listener, this.#logger, event)
  }
}
