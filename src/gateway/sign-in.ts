import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { PrincipalFaults } from '../pipeline/principal-faults.ts'
import type { Authenticate, Credentials, Principal } from '../stores/principal.ts'
import { checkPrincipal } from './check-principal.ts'

type Found = Principal | null | undefined

/**
 * Member of credentials by which `gatewayKeys()` calls the gateway that received the request. A registered symbol, because a host may
 * load the ESM and the CommonJS copy of the package.
 */
const GATEWAY_KEYS = Symbol.for('signalbox.gatewayKeys')
/** Marks authentication functions that check the gateway's keys. */
const ASKS_KEYS = Symbol.for('signalbox.asksGatewayKeys')

interface GatewayCredentials extends Credentials {
  readonly [GATEWAY_KEYS]?: Authenticate
}

/**
 * Tries several authentication functions in order, until one knows the caller: `authenticate: firstOf(sessionCookie, gatewayKeys())`.
 * If one returns undefined or null, the next is tried; an error ends the search. No promise is created if all results are
 * synchronous.
 * @throws TypeError without any function, or if an argument is not a function.
 */
export function firstOf(...ways: readonly Authenticate[]): Authenticate {
  if (ways.length === 0) throw new TypeError('firstOf: give at least one way to sign in')
  for (const [index, way] of ways.entries())
    if (typeof way !== 'function') throw new TypeError(`firstOf: argument ${index + 1} must be a function`)
  const ask = (credentials: Credentials, from: number): MaybePromise<Found> => {
    for (let index = from; index < ways.length; index++) {
      const found = ways[index]!(credentials)
      if (isPending(found)) return found.then((principal) => principal ?? ask(credentials, index + 1))
      if (found !== undefined && found !== null) return found
    }
    return undefined
  }
  const authenticate: Authenticate = (credentials) => ask(credentials, 0)
  return ways.some(asksGatewayKeys) ? Object.assign(authenticate, { [ASKS_KEYS]: true }) : authenticate
}

/**
 * Authenticates by the keys of `gateway.keys` and of the option `keys`, which an `authenticate` of the host otherwise replaces. It
 * uses the gateway of each request, so one value serves several gateways, and a function of the host may call it and change its
 * result.
 * @throws TypeError when called with credentials that no gateway has created.
 */
export function gatewayKeys(): Authenticate {
  const authenticate: Authenticate = (credentials: GatewayCredentials) => {
    const keys = credentials[GATEWAY_KEYS]
    if (keys === undefined)
      throw new TypeError('gatewayKeys: pass the credentials with which the gateway called authenticate')
    return keys(credentials)
  }
  return Object.assign(authenticate, { [ASKS_KEYS]: true })
}

/** Whether an authentication function is known to check the gateway's keys. */
export function asksGatewayKeys(authenticate: Authenticate): boolean {
  return (authenticate as { readonly [ASKS_KEYS]?: true })[ASKS_KEYS] === true
}

/**
 * Wraps the host's authentication and checks its result. Principals of the gateway's own keys need no check.
 * @returns a function that throws GatewayError `invalid_principal`, and the errors of the host's function.
 */
export function signIn(host: Authenticate, keys: Authenticate, faults: PrincipalFaults): Authenticate {
  const ofKeys = new WeakSet<Principal>()
  const note = (found: Found): Found => {
    if (found !== undefined && found !== null) ofKeys.add(found)
    return found
  }
  const ownKeys: Authenticate = (credentials) => {
    const found = keys(credentials)
    return isPending(found) ? found.then(note) : note(found)
  }
  const checked = (found: Found): Found => {
    if (found === undefined || found === null || ofKeys.has(found)) return found
    try {
      checkPrincipal(found, 'authenticate')
    } catch (error) {
      throw faults.error((error as Error).message)
    }
    return found
  }
  return ({ apiKey, header, request }) => {
    const credentials: GatewayCredentials = { apiKey, header, request, [GATEWAY_KEYS]: ownKeys }
    const found = host(credentials)
    return isPending(found) ? found.then(checked) : checked(found)
  }
}
