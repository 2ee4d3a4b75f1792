import type { EventListener, GatewayEvent } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import { emitTo } from '../pipeline/pipeline-context.ts'

/** Those who are told of the events of one gateway: its host, and handlers beside it while they listen. */
export class EventListeners {
  readonly #logger: Logger
  #all: readonly EventListener[]
  /** Tells all of them; undefined without listeners, so that no event need be made. */
  current: EventListener | undefined

  constructor(host: EventListener | undefined, logger: Logger) {
    this.#logger = logger
    this.#all = host === undefined ? [] : [host]
    this.current = host
  }

  /** @returns a function that ends it. */
  add(listener: EventListener): () => void {
    // One listener may be added twice, and ends twice.
    const added: EventListener = (event) => listener(event)
    this.#set([...this.#all, added])
    return () => this.#set(this.#all.filter((other) => other !== added))
  }

  #set(listeners: readonly EventListener[]): void {
    this.#all = listeners
    const [only] = listeners
    this.current = listeners.length > 1 ? (event) => this.#tellEach(event) : only
  }

  /** What one of them throws keeps nothing from the others. */
  #tellEach(event: GatewayEvent): void {
    for (const listener of this.#all) emitTo(listener, this.#logger, event)
  }
}
