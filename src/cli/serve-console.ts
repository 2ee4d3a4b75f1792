import { randomBytes } from 'node:crypto'
import { type ConsoleHandlerOptions, consoleHandler } from '../console/index.ts'
import type { ExchangeHandler } from '../core/exchange.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { SettingError } from './setting-values.ts'

/** Key of the operator, and whether it was created for this run. */
export interface ServedOperatorKey {
  readonly key: string
  readonly isMade: boolean
}

const KEY_BYTES = 18

/**
 * Returns the key for the console.
 * @param isTrial Whether only stand-ins and memory are used: then a key is created.
 * @throws SettingError if there is no key.
 */
export function consoleKey(given: string | undefined, isTrial: boolean): ServedOperatorKey {
  if (given !== undefined) return { key: given, isMade: false }
  // Contains only letters and digits, so that a double click in a terminal selects all of it.
  if (isTrial) return { key: randomBytes(KEY_BYTES).toString('hex'), isMade: true }
  throw new SettingError('--console: set SIGNALBOX_OPERATOR_KEY, at least 24 characters, which opens it')
}

/** Returns the gateway with the console at `/console/` and the admin API at `/admin/v1`. */
export function withConsole(
  gateway: Gateway,
  inner: ExchangeHandler,
  { key, clientAddress, logger }: ServedOperatorKey & Pick<ConsoleHandlerOptions, 'clientAddress' | 'logger'>,
): ExchangeHandler {
  const operators = consoleHandler(gateway, { operatorKeys: [{ name: 'operator', key }], clientAddress, logger })
  return {
    handle(request, sink) {
      ;(isOfOperators(request.path) ? operators : inner).handle(request, sink)
    },
  }
}

function isOfOperators(path: string): boolean {
  return path === '/console' || path.startsWith('/console/') || path.startsWith('/admin/')
}
