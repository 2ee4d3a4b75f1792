import { type Clock, systemClock } from '../../core/clock.ts'
import type { Transport } from '../../transport/transport.ts'
import { answeredCall } from './answered-call.ts'
import { awaitableQueue } from './awaitable-queue.ts'
import { dashscopeVideos } from './dashscope/dashscope-videos.ts'
import { playSteps } from './delivery/play-steps.ts'
import type { VendorConnection } from './delivery/vendor-connection.ts'
import type { QueuedFault } from './faults/fault.ts'
import { faultQueue } from './faults/fault-queue.ts'
import { VIDEO_FILES } from './files/video-files.ts'
import { memoryTransport } from './memory-transport.ts'
import { SANDBOX_OPERATIONS } from './operations.ts'
import type { IncomingCall, SandboxCall } from './sandbox-call.ts'
import { type SocketServer, socketServer } from './socket-server.ts'

/** Settings of {@link sandboxVendors}. */
export interface SandboxOptions {
  /** Times answers, delays and time-outs; default the machine's clock. */
  readonly clock?: Clock
  /** Wait before each event of a stream, in milliseconds; default 0. */
  readonly eventDelayMs?: number
  /** How many calls `requests` keeps, the newest ones; default 1000. */
  readonly maxRequests?: number
  /** How long a video task waits before it runs, in milliseconds; default 1000. */
  readonly videoPendingMs?: number
  /** How long a video task runs before it ends, in milliseconds; default 2000. */
  readonly videoRunningMs?: number
}

/** Stand-ins for all vendors, in one process and without a network. */
export interface Sandbox {
  /** Serves every vendor's paths on 127.0.0.1; without a port, or with 0, on a free one. Once at a time. */
  listen(port?: number): Promise<{ origin: string; port: number }>
  /** Cuts every connection and stops listening. Safe to call twice. */
  close(): Promise<void>
  /** A transport whose calls are answered in process, whatever their origin. */
  transport(): Transport
  /** The calls received, oldest first; the newest 1000 unless set otherwise. */
  readonly requests: readonly SandboxCall[]
  /** The oldest call not yet handed out by this method, or the next to arrive. */
  nextRequest(): Promise<SandboxCall>
  /** Connections that are open now: sockets (idle ones too) and calls in process. */
  readonly openConnections: number
  /** Calls that are being answered now. */
  readonly openCalls: number
  /** How many callers left before their answer had ended. */
  readonly aborted: number
  /** Unix milliseconds at which the oldest departure not yet handed out, or the next one, was seen. */
  nextAbort(): Promise<number>
  /**
   * The most queries of video tasks that one key made within any second of the clock, refused ones included and those that
   * `fault` struck left out. The vendor refuses from the 21st on.
   */
  readonly mostTaskQueriesPerSecond: number
  /** Lets the next call that fits go wrong. The oldest fitting fault strikes first, one for each call. */
  fault(fault: QueuedFault): void
  /**
   * Forgets faults, received calls, departures and counts. Calls under way go on, and so do video tasks: a vendor does not
   * forget them either.
   */
  reset(): void
}

/**
 * Makes offline stand-ins for OpenAI, Anthropic, Gemini, DashScope and Voyage. They speak the vendors' real wire formats,
 * refuse what the vendors refuse, answer always the same, and fail on request (see `Fault`).
 *
 * The model echoes: it answers `You said: …`, calls the functions that the text names (`call get_weather`), quotes their
 * results, fills JSON schemas, and thinks when it is asked to. Prompt tokens are a quarter of the prompt's bytes, rounded
 * up; each word of the answer is one token. The word `cached` in a prompt makes half of it a cache read, `cache-write` a
 * quarter of it a cache write. Videos become ready by the clock and are steered by marks such as `[[video:fail]]`.
 *
 * @example
 * const sandbox = sandboxVendors()
 * const { origin } = await sandbox.listen()
 * await fetch(`${origin}/v1/chat/completions`, { method: 'POST', headers: { authorization: 'Bearer any' }, body })
 */
export function sandboxVendors(options: SandboxOptions = {}): Sandbox {
  const { clock = systemClock, eventDelayMs = 0, maxRequests = 1000 } = options
  const { videoPendingMs: pendingMs = 1000, videoRunningMs: runningMs = 2000 } = options
  const videos = dashscopeVideos({ pendingMs, runningMs })
  const faults = faultQueue()
  const operations = [...videos.operations, VIDEO_FILES, ...SANDBOX_OPERATIONS]
  const sources = { operations, faults, eventDelayMs, now: () => clock.now() }
  const requests: SandboxCall[] = []
  const arrivals = awaitableQueue<SandboxCall>()
  const departures = awaitableQueue<number>()
  const inProgress = new Set<VendorConnection>()
  let aborted = 0
  let server: SocketServer | undefined

  const receive = (incoming: IncomingCall, connection: VendorConnection): void => {
    const { call, steps } = answeredCall(incoming, sources)
    requests.push(call)
    if (requests.length > maxRequests) requests.shift()
    for (const earlier of inProgress) if (earlier.closed) inProgress.delete(earlier)
    inProgress.add(connection)
    const stop = playSteps(steps, connection, clock)
    connection.onLeave(() => {
      stop()
      aborted++
      departures.push(Date.now())
    })
    arrivals.push(call)
  }
  const inProcess = memoryTransport(receive, clock)

  return {
    async listen(port = 0) {
      if (server !== undefined) throw new Error(`the stand-ins listen already, at ${server.origin}`)
      server = await socketServer(port, receive)
      return { origin: server.origin, port: server.port }
    },
    async close() {
      const closing = server
      server = undefined
      inProcess.resetAll()
      await closing?.close()
    },
    transport: () => inProcess,
    requests,
    nextRequest: () => arrivals.next(),
    get openConnections() {
      return inProcess.open + (server?.sockets.size ?? 0)
    },
    get openCalls() {
      let count = 0
      for (const connection of inProgress) if (!connection.closed) count++
      return count
    },
    get aborted() {
      return aborted
    },
    nextAbort: () => departures.next(),
    get mostTaskQueriesPerSecond() {
      return videos.mostQueriesPerSecond
    },
    fault: (fault) => faults.add(fault),
    reset() {
      faults.clear()
      requests.length = 0
      arrivals.clear()
      departures.clear()
      aborted = 0
      videos.resetCounts()
    },
  }
}
