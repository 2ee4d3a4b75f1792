import type { Timeouts } from '../../../src/pipeline/pipeline-context.ts'

/** What a gateway of a drill is told. */
export interface GatewaySettings {
  readonly vendors: readonly { readonly id: string; readonly origin: string }[]
  /** Makes one model of each kind for each route: `chat-<name>`, `embeddings-<name>`, `image-<name>`. */
  readonly routes: readonly { readonly name: string; readonly vendors: readonly string[] }[]
  readonly timeouts: Timeouts
  /** Of the server; absent: Node's own. */
  readonly requestTimeoutMs?: number
}

/** What it holds at one moment, after garbage collection. Money in nano-dollars. */
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
  /** Sum of all bills that the host was told of. */
  readonly charged: string
  /** How often requests ended in each way: endpoint, ending, status, code. */
  readonly endings: Readonly<Record<string, number>>
}
