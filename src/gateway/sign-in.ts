import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { PrincipalFaults } from '../pipeline/principal-faults.ts'
import type { Authenticate, Credentials, Principal } from '../stores/principal.ts'
import { checkPrincipal } from './check-principal.ts'

type Found = Principal | null | undefined

/**
 * The member of credentials by which `gatewayKeys()` asks the gateway that the request came to. A registered symbol, because a host
 * may hold the ESM and the CommonJS copy of the package.
 */
const GATEWAY_KEYS = Symbol.for('signalbox.gatewayKeys')
/** Marks ways to sign in that are known to ask for the gateway's keys. */
const ASKS_KEYS = Symbol.for('signalbox.asksGatewayKeys')

interface GatewayCredentials extends Credentials {
  readonly [GATEWAY_KEYS]?: Authenticate
}

/**
 * Asks several ways to sign in, in their order, until one knows the caller: `authenticate: firstOf(sessionCookie, gatewayKeys())`.
 * Undefined or null asks the next one; an error of one ends it. No promise is made while the answers are there at once.
 * @throws TypeError without any, and for one that is no function.
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
 * Signs in by the keys of `gateway.keys` and of the option `keys`, which an `authenticate` of the host's own replaces. It asks the
 * gateway whose request it is given, so one value serves several gateways, and a function of the host's may call it and change what
 * it finds.
 * @throws TypeError, when it is asked, for credentials that no gateway has made.
 */
export function gatewayKeys(): Authenticate {
  const authenticate: Authenticate = (credentials: GatewayCredentials) => {
    const keys = credentials[GATEWAY_KEYS]
    if (keys === undefined)
      throw new TypeError('gatewayKeys: give it the credentials that the gateway has called authenticate with')
    return keys(credentials)
  }
  return Object.assign(authenticate, { [ASKS_KEYS]: true })
}

/** Is it known that a way to sign in asks for the gateway's keys? */
export function asksGatewayKeys(authenticate: Authenticate): boolean {
  return (authenticate as { readonly [ASKS_KEYS]?: true })[ASKS_KEYS] === true
}

/**
 * The host's way to sign in, with what it finds checked. Principals of the gateway's own keys need no check.
 * @returns a function that throws GatewayError `invalid_principal`, and what the host's throws.
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
