import type { Script } from './redis-scripts.ts'

/** A client that takes keys and arguments in one row: ioredis, iovalkey, and the clusters of both. */
export interface RowClient {
  evalsha(sha1: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
  eval(script: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
}

/** A client that takes keys and arguments by name: node-redis 4 and later, and its cluster. */
export interface NamedClient {
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
}

/** A connected client of the host. The gateway sends scripts through it and leaves its connection alone. */
export type RedisClient = RowClient | NamedClient

/** Runs one script and gives what it returned, as a list of whole numbers. */
export type ScriptRunner = (script: Script, keys: readonly string[], args: readonly string[]) => Promise<number[]>

/**
 * Runs scripts by their hash. A server that does not have a script yet, or lost it in a restart, is sent its text.
 * @throws TypeError when the client has no method to run scripts by hash.
 */
export function scriptRunner(client: RedisClient): ScriptRunner {
  const calls = callsOf(client)
  return async (script, keys, args) => {
    if (script.isSentWhole === true) return numbersOf(await calls.byText(script.text, keys, args))
    try {
      return numbersOf(await calls.byHash(script.sha1, keys, args))
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return numbersOf(await calls.byText(script.text, keys, args))
    }
  }
}

type ScriptCall = (script: string, keys: readonly string[], args: readonly string[]) => Promise<unknown>

function callsOf(client: RedisClient): { byHash: ScriptCall; byText: ScriptCall } {
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
  throw new TypeError('redisLimits: client must have a method evalsha or evalSha')
}

/** Clients may be set up to give numbers as text. */
function numbersOf(reply: unknown): number[] {
  const numbers = (Array.isArray(reply) ? reply : [reply]).map(Number)
  if (numbers.some((value) => !Number.isFinite(value))) throw new TypeError('the server gave no numbers')
  return numbers
}
