import type { Clock, Timer } from '../../core/clock.ts'
import type { Script } from './redis-scripts.ts'

/** Client with keys and arguments in one list: ioredis, iovalkey, and the clusters of both. */
export interface RowClient {
  /** Runs a cached script by its SHA-1. */
  evalsha(sha1: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
  /** Sends the text of a script and runs it. */
  eval(script: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
}

/** Client with named keys and arguments: node-redis 4 and later, and its cluster. */
export interface NamedClient {
  /** Runs a cached script by its SHA-1. */
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  /** Sends the text of a script and runs it. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
}

/** Connected client of the host. The gateway only sends scripts through it; the host manages its connection. */
export type RedisClient = RowClient | NamedClient

/** Runs one script and returns the reply of the server. */
export type ScriptRunner<Reply> = (script: Script, keys: readonly string[], args: readonly string[]) => Promise<Reply>

/** Runs scripts that reply with integers; see {@link replyRunner}. */
export function scriptRunner(client: RedisClient): ScriptRunner<number[]> {
  return replyRunner(client, numbersOf)
}

/**
 * Runs scripts by their hash. If the server does not have a script, for example after a restart, its text is sent.
 * @param read Parses a reply; throws if it is invalid.
 * @throws TypeError if the client has no method to run scripts by hash.
 */
export function replyRunner<Reply>(client: RedisClient, read: (reply: unknown) => Reply): ScriptRunner<Reply> {
  const calls = callsOf(client)
  return async (script, keys, args) => {
    if (script.isSentWhole === true) return read(await calls.byText(script.text, keys, args))
    try {
      return read(await calls.byHash(script.sha1, keys, args))
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return read(await calls.byText(script.text, keys, args))
    }
  }
}

const NO_CLIENT = 'client must be one of ioredis, iovalkey or node-redis, with a method evalsha or evalSha'

type ScriptCall = (script: string, keys: readonly string[], args: readonly string[]) => Promise<unknown>

function callsOf(client: RedisClient): { byHash: ScriptCall; byText: ScriptCall } {
  if (typeof client !== 'object' || client === null) throw new TypeError(NO_CLIENT)
  if ('evalsha' in client && typeof client.evalsha === 'function') {
    return {
      byHash: (sha1, keys, args) => client.evalsha(sha1, keys.length, ...keys, ...args),
      byText: (text, keys, args) => client.eval(text, keys.length, ...keys, ...args),
    }
  }
  if ('evalSha' in client && typeof client.evalSha === 'function') {
    return {
      byHash: (sha1, keys, args) => client.evalSha(sha1, { keys: [...keys], arguments: [...args] }),
      byText: (text, keys, args) => client.eval(text, { keys: [...keys], arguments: [...args] }),
    }
  }
  throw new TypeError(NO_CLIENT)
}

/** Returns a reply as a list of integers. Clients may be configured to return numbers as strings. */
function numbersOf(reply: unknown): number[] {
  const numbers = (Array.isArray(reply) ? reply : [reply]).map(Number)
  if (numbers.some((value) => !Number.isFinite(value))) throw new TypeError('the server did not return numbers')
  return numbers
}

/** Reason why the server is currently unused. */
export interface LinkFailure {
  readonly reason: 'deadline' | 'error'
  readonly error: unknown
}

/** Parts of a link. */
export interface RedisLinkOptions<Reply> {
  readonly run: ScriptRunner<Reply>
  /** Maximum duration of a call. */
  readonly deadlineMs: number
  readonly clock: Clock
  /** Returns the key of a probe after a failed call on the given key; on the same node of a cluster. */
  readonly probeKey: (failedKey: string) => string
  readonly probe: Script
  readonly onDown: (failure: LinkFailure) => void
  /**
   * Synchronizes a recovered server before it is used. `call` has the deadline of every call, and works although the link is
   * down. Returns false to retry after the next probe.
   */
  readonly beforeUp?: (call: RedisLink<Reply>['call']) => Promise<boolean>
  readonly onUp: (downMs: number) => void
}

/** Connection to a server that may be slow or unavailable. */
export interface RedisLink<Reply = readonly number[]> {
  /** False while the server is not used; calls then return undefined immediately. */
  readonly isUp: boolean
  /** Returns the script's result, or undefined if the server did not answer in time. Never rejects. Ignores late replies. */
  call(script: Script, keys: readonly string[], args: readonly string[]): Promise<Reply | undefined>
  /** Stops probing. */
  close(): void
}

const PROBE_INTERVAL_MS = 200
// Clients queue commands that they cannot send. A few probes suffice to detect a recovered server.
const MAX_PROBES_IN_FLIGHT = 8

/**
 * Puts a deadline on every call. The first failed call marks the link as down, so that an unavailable server costs one deadline
 * in total and not one per request. The link is up again when a probe, sent every 200 ms, is answered within the deadline.
 */
export function redisLink<Reply>(options: RedisLinkOptions<Reply>): RedisLink<Reply> {
  const { run, deadlineMs, clock } = options
  let isUp = true
  let isClosed = false
  /** Counts how often the link came up. Failures of earlier calls are outdated. */
  let generation = 0
  let downSinceMs = 0
  let probesUnderWay = 0
  let isPreparing = false
  let probeKey = ''
  let probeTimer: Timer | undefined

  function goDown(failure: LinkFailure, failedKey: string): void {
    isUp = false
    downSinceMs = clock.now()
    probeKey = options.probeKey(failedKey)
    scheduleProbe()
    options.onDown(failure)
  }

  async function prepare(): Promise<void> {
    if (isPreparing) return
    isPreparing = true
    const isReady = (await options.beforeUp?.((...call) => send(...call))) ?? true
    isPreparing = false
    if (isReady && !isClosed) goUp()
  }

  function goUp(): void {
    isUp = true
    generation += 1
    probeTimer?.cancel()
    options.onUp(clock.now() - downSinceMs)
  }

  function scheduleProbe(): void {
    if (isClosed) return
    probeTimer = clock.schedule(PROBE_INTERVAL_MS, () => {
      scheduleProbe()
      if (probesUnderWay < MAX_PROBES_IN_FLIGHT) sendProbe()
    })
  }

  function sendProbe(): void {
    const sentAtMs = clock.now()
    probesUnderWay += 1
    run(options.probe, [probeKey], []).then(
      () => {
        probesUnderWay -= 1
        if (isUp || isClosed) return
        if (clock.now() - sentAtMs <= deadlineMs) void prepare()
        // A late answer may come from a client's queue after a reconnect: only a new probe shows the server's current
        // speed.
        else if (probesUnderWay === 0) sendProbe()
      },
      () => {
        probesUnderWay -= 1
      },
    )
  }

  function send(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    onFailure?: (failure: LinkFailure) => void,
  ): Promise<Reply | undefined> {
    return new Promise((resolve) => {
      let isOver = false
      const end = (reply: Reply | undefined, failure?: LinkFailure): void => {
        if (isOver) return
        isOver = true
        deadline.cancel()
        if (failure !== undefined) onFailure?.(failure)
        resolve(reply)
      }
      // After a pause of this process timers run before sockets are read: a reply that is already here still counts.
      const deadline = clock.schedule(deadlineMs, () => {
        setImmediate(() => end(undefined, { reason: 'deadline', error: undefined }))
      })
      run(script, keys, args).then(
        (reply) => end(reply),
        (error: unknown) => end(undefined, { reason: 'error', error }),
      )
    })
  }

  return {
    get isUp() {
      return isUp
    },

    async call(script, keys, args) {
      if (!isUp) return undefined
      const startedIn = generation
      return send(script, keys, args, (failure) => {
        if (isUp && startedIn === generation) goDown(failure, keys[0] ?? '')
      })
    },

    close() {
      isClosed = true
      probeTimer?.cancel()
    },
  }
}
