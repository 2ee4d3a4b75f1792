import type { Observer } from '../core/observer.ts'
import type { Transport, TransportControl, TransportHandler, TransportRequest } from '../transport/transport.ts'

/** Observer and the index of its states. */
export interface IndexedObserver {
  readonly observer: Observer
  readonly index: number
}

/** The observers that take part in sending. */
export interface SendingObservers {
  /** Observers that run the function that sends a request. */
  readonly senders: readonly IndexedObserver[]
  /** Observers that add headers to calls. */
  readonly headerGivers: readonly IndexedObserver[]
  threw(method: keyof Observer, error: unknown): void
}

/** Transport that lets observers take part in sending. */
export class ObservedTransport implements Transport {
  readonly #inner: Transport
  readonly #observers: SendingObservers
  readonly #states: readonly unknown[] | undefined

  constructor(inner: Transport, observers: SendingObservers, states?: readonly unknown[]) {
    this.#inner = inner
    this.#observers = observers
    this.#states = states
  }

  get givesBytesAway(): boolean {
    return this.#inner.givesBytesAway === true
  }

  for(states: readonly unknown[]): Transport {
    return new ObservedTransport(this.#inner, this.#observers, states)
  }

  send(request: TransportRequest, handler: TransportHandler): TransportControl {
    const { senders } = this.#observers
    const states = this.#states
    const wanted = states === undefined ? request : this.#withHeaders(request, states)
    let sent: TransportControl | undefined
    const send = (): TransportControl => {
      sent ??= this.#inner.send(wanted, handler)
      return sent
    }
    let run = send
    for (let at = 0; at < senders.length; at++) {
      const { observer, index } = senders[at]!
      const inner = run
      run = () => observer.runSend?.(states?.[index], inner) ?? inner()
    }
    try {
      run()
    } catch (error) {
      this.#observers.threw('runSend', error)
    }
    // A failing observer must not stop the request.
    return send()
  }

  #withHeaders(request: TransportRequest, states: readonly unknown[]): TransportRequest {
    const { headerGivers } = this.#observers
    if (headerGivers.length === 0) return request
    const headers: string[] = []
    for (const { observer, index } of headerGivers) {
      try {
        headers.push(...(observer.attemptHeaders?.(states[index]) ?? NO_HEADERS))
      } catch (error) {
        this.#observers.threw('attemptHeaders', error)
      }
    }
    return headers.length === 0 ? request : { ...request, headers: [...request.headers, ...headers] }
  }

  close(): Promise<void> {
    return this.#inner.close()
  }
}

const NO_HEADERS: readonly string[] = []
