import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock, Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import type { ClientAddress } from '../core/forwarded-address.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { Logger } from '../core/logger.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { operatorRefusal, SHORTEST_OPERATOR_KEY } from '../gateway/operator-key.ts'
import { bearerToken } from '../pipeline/authenticate.ts'

/**
 * Permissions of operators. `read`: view everything except content. `write`: accounts, keys, vendors, tasks, webhooks. `money`:
 * credits, corrections, refunds, holds, credit limits. `play`: new calls for an account. `content`: everything that shows prompts or
 * answers, which includes error texts of tasks, new keys of callers, and calls that refer to stored data of an account.
 */
export const OPERATOR_SCOPES = ['read', 'write', 'money', 'play', 'content'] as const
/** Name of a permission in {@link OPERATOR_SCOPES}. */
export type OperatorScope = (typeof OPERATOR_SCOPES)[number]

/** Operator of the gateway. */
export interface Operator {
  /** Name for events and logs: 1 to 200 characters on one line, such as `olga+ops@example.com` or `Jörg Maier`. */
  readonly name: string
  readonly can: readonly OperatorScope[]
}

/** Key that operators send as bearer token. */
export interface OperatorKey {
  /** The key: at least 24 characters without spaces. */
  readonly key: string
  /** Name for events and logs; see {@link Operator}. */
  readonly name: string
  /** Permissions of the key. Default: all. */
  readonly can?: readonly OperatorScope[] | undefined
}

const OPERATOR_KEY_MEMBERS = {
  key: true,
  name: true,
  can: true,
} satisfies MemberNames<OperatorKey>

/** Parts of a request that the host's own check can read. */
export type OperatorRequest = Pick<GatewayRequest, 'method' | 'path' | 'header' | 'remoteAddress'>

/** How operators are identified. At least one of `operatorKeys` and `authorize` is required. */
export interface OperatorRules {
  /** Keys of operators, each with a name for the log. */
  readonly operatorKeys?: readonly OperatorKey[] | undefined
  /**
   * Identifies the operator by the host's own session. `undefined` and `null` mean that the sender is not an operator. The request
   * gets 503 if the function throws, takes more than 10 seconds, or returns a value that is not an {@link Operator}.
   */
  readonly authorize?: ((request: OperatorRequest) => MaybePromise<Operator | null | undefined>) | undefined
  /**
   * Returns the address of the client, for the limit of 5 wrong keys a minute. By default the peer of the connection. Behind a proxy
   * that is the proxy, so use `forwardedAddress` of `signalbox`.
   */
  readonly clientAddress?: ClientAddress | undefined
}

/** Operator, and how they were identified. */
export interface IdentifiedOperator extends Operator {
  /**
   * Whether a bearer token identified the operator. Browsers never send one by themselves. If false, the host's own check did, which
   * may depend on a cookie.
   */
  readonly hasKey: boolean
}

const LONGEST_CHECK_MS = 10_000

/** Identifies operators. Without any configuration, nobody has access. */
export class Operators {
  readonly #keys: readonly { readonly digest: Buffer; readonly operator: Operator }[]
  readonly #rules: OperatorRules
  readonly #clock: Clock
  readonly #logger: Logger

  /** @throws TypeError for rules that identify no operator, and for invalid keys, names and scopes. */
  constructor(rules: OperatorRules, clock: Clock, logger: Logger) {
    const { operatorKeys = [], authorize } = rules
    if (operatorKeys.length === 0 && authorize === undefined)
      throw new TypeError('give operatorKeys or authorize: without one of them no operator can be identified')
    for (const [index, key] of operatorKeys.entries())
      checkMembers(key, OPERATOR_KEY_MEMBERS, '', `operatorKeys[${index}]`)
    this.#keys = operatorKeys.map(({ key, name, can = OPERATOR_SCOPES }) => {
      if (typeof key !== 'string' || key.length < SHORTEST_OPERATOR_KEY || /\s/.test(key))
        throw new TypeError(`operatorKeys: a key must have at least ${SHORTEST_OPERATOR_KEY} characters and no spaces`)
      return { digest: digestOf(key), operator: checkedOperator({ name, can }, 'operatorKeys') }
    })
    this.#rules = rules
    this.#clock = clock
    this.#logger = logger
  }

  /**
   * Identifies the sender of a request.
   * @throws GatewayError `invalid_api_key`, `rate_limited` after too many wrong keys, or `store_unavailable` if the host's own check
   *   failed.
   */
  async identify(request: GatewayRequest): Promise<IdentifiedOperator> {
    const token = bearerToken(request.header('authorization'))
    const operator = token === undefined ? undefined : this.#byKey(token)
    if (operator !== undefined) return { ...operator, hasKey: true }
    const vouched = await this.#byHost(request)
    if (vouched !== undefined) return { ...vouched, hasKey: false }
    throw operatorRefusal(request, this.#clock, this.#rules.clientAddress)
  }

  /** Returns the address of the client, if it is known. */
  addressOf(request: GatewayRequest): string | undefined {
    return this.#rules.clientAddress?.(request) ?? request.remoteAddress
  }

  /** Compares with every key, so that the duration reveals nothing about them. */
  #byKey(token: string): Operator | undefined {
    const digest = digestOf(token)
    let found: Operator | undefined
    for (const key of this.#keys) if (timingSafeEqual(digest, key.digest)) found = key.operator
    return found
  }

  async #byHost(request: GatewayRequest): Promise<Operator | undefined> {
    const { authorize } = this.#rules
    if (authorize === undefined) return undefined
    let timer: Timer | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = this.#clock.schedule(LONGEST_CHECK_MS, () => reject(new Error('authorize took too long')))
    })
    try {
      const found = await Promise.race([authorize(request), late])
      return found == null ? undefined : checkedOperator(found, 'authorize')
    } catch (cause) {
      this.#logger.error('authorize failed, so the request was refused', { error: cause })
      throw new GatewayError('store_unavailable', { message: 'The operator could not be identified.', cause })
    } finally {
      timer?.cancel()
    }
  }
}

/** Printable characters on one line, so that a name cannot start a new line in a log. */
const OPERATOR_NAME = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,200}$/u

/** @throws TypeError that begins with `source` if the name has a line break or the scopes are not a list of known ones. */
function checkedOperator({ name, can }: Operator, source: string): Operator {
  if (typeof name !== 'string' || name.trim() === '' || !OPERATOR_NAME.test(name))
    throw new TypeError(`${source}: the name of an operator must be 1 to 200 characters on one line`)
  const scopes = OPERATOR_SCOPES.join(', ')
  if (!Array.isArray(can)) throw new TypeError(`${source}: "can" must be a list of scopes: ${scopes}`)
  const unknown = can.find((scope) => !OPERATOR_SCOPES.includes(scope))
  if (unknown !== undefined)
    throw new TypeError(`${source}: the scope ${JSON.stringify(unknown)} is unknown. The scopes are ${scopes}`)
  return { name, can }
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
