import type { Timeouts } from '../../../src/pipeline/pipeline-context.ts'

/** Settings of a gateway in a drill. */
export interface GatewaySettings {
  readonly vendors: readonly { readonly id: string; readonly origin: string }[]
  /** Makes one model of each kind for each route: `chat-<name>`, `embeddings-<name>`, `image-<name>`. */
  readonly routes: readonly { readonly name: string; readonly vendors: readonly string[] }[]
  readonly timeouts: Timeouts
  /** Request timeout of the server. Defaults to Node's own. */
  readonly requestTimeoutMs?: number
}

/** Measurements of the process after garbage collection. Money in nano-dollars. */
export interface GatewayMeasures {
  /** Objects, and buffers outside the heap. */
  readonly heapBytes: number
  readonly externalBytes: number
  readonly residentBytes: number
  /** Connections of both sides. */
  readonly sockets: number
  readonly callsUnderWay: number
  readonly retriesLeft: number
  /** Used since it was asked last. */
  readonly cpuMs: number
  readonly balance: string
  readonly held: string
  /** Sum of all entries. */
  readonly journal: string
  /** Sum of all charges that were reported to the host. */
  readonly charged: string
  /** How often requests ended in each way: endpoint, ending, status, code. */
  readonly endings: Readonly<Record<string, number>>
}
