// See docs/decisions/0026-admin-and-console.md.

import { createHash, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import type { Clock, Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, ClientAddress, GatewayRequest } from '../core/exchange.ts'
import { checkMembers, hintAt, memberNames } from '../core/known-members.ts'
import type { Logger } from '../core/logger.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { checkRequest } from '../endpoints/schema.ts'
import { MIN_OPERATOR_KEY, operatorRefusal } from '../gateway/authenticate.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { bearerToken } from '../pipeline/authenticate.ts'

/** Parts of a gateway that work on its store alone. The command line has them without a gateway. */
export type Administration = Pick<Gateway, 'accounts' | 'audit' | 'holds' | 'keys' | 'usage' | 'webhooks'>

/** Request of an identified operator. */
export interface AdminCall<Host = Gateway> {
  readonly gateway: Host
  readonly clock: Clock
  readonly isReadOnly: boolean
  readonly operator: Operator
  /** Values of the path's parameters. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** Parsed JSON, or `undefined` if there is no body. */
  readonly body: unknown
  readonly idempotencyKey: string | undefined
}

/** File of lines. */
export interface CsvAnswer {
  readonly fileName: string
  readonly lines: AsyncIterable<string>
}

/** Answer of a route: JSON, a file, or the output of another handler. */
export type AdminAnswer =
  | { readonly json: object }
  | { readonly csv: CsvAnswer }
  | { readonly forward: (sink: ByteSink) => void }

/** Route of the admin API. Commands of the command line run the routes that need only an {@link Administration}. */
export interface AdminRoute<Host = Gateway> {
  /** Name in the OpenAPI document, in events and logs: `credit_account`. */
  readonly id: string
  readonly method: 'GET' | 'POST' | 'PATCH'
  /** Path below `/v1`, with parameters in braces: `/accounts/{account}`. */
  readonly path: string
  readonly tag: string
  readonly summary: string
  /** Scope that an operator needs. */
  readonly scope: OperatorScope
  /** Scope that the route requires in addition to `scope`. If omitted, `scope` is enough. */
  readonly alsoScope?: OperatorScope
  /** Parameter that names the changed object, for the event. Defaults to the first parameter of the path. */
  readonly target?: string
  /** Kind of the object that the route creates under the `id` of the body unless it exists. If omitted, it creates none. */
  readonly creates?: 'account' | 'key'
  /** Member of the answer that is shown once and never kept. */
  readonly secret?: string
  /** Whether the answer shows content of callers, so that the audit does not keep it. Default false. */
  readonly showsContent?: boolean
  /** Media types of the answer. */
  readonly answers: readonly string[]
  readonly query: z.ZodType | undefined
  readonly body: z.ZodType | undefined
  /** Schema of a JSON answer. */
  readonly answer: z.ZodType | undefined
  /** @throws GatewayError */
  readonly run: (call: AdminCall<Host>) => Promise<AdminAnswer>
}

/** Values of the parameters in a path. */
type PathParams<Path extends string> = { readonly [Name in ParamNames<Path>]: string }
type ParamNames<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamNames<Rest> : never

/** Input of a route that is defined with schemas. */
interface CheckedCall<Host, Path extends string, Query, Body>
  extends Omit<AdminCall<Host>, 'params' | 'query' | 'body'> {
  readonly params: PathParams<Path>
  readonly query: Query
  readonly body: Body
}

/** Route as it is defined: with its path under the name of its method. The scope of a `get` defaults to `read`. */
type Definition<Path, Query, Body> = Omit<
  AdminRoute,
  'method' | 'path' | 'tag' | 'scope' | 'answers' | 'query' | 'body' | 'answer' | 'run'
> &
  (
    | { readonly get: Path; readonly scope?: OperatorScope }
    | { readonly post: Path; readonly scope: OperatorScope }
    | { readonly patch: Path; readonly scope: OperatorScope }
  ) & {
    readonly query?: z.ZodType<Query>
    readonly body?: z.ZodType<Body>
  }

/** Route without its tag, which {@link routesOf} adds. */
export type UntaggedRoute<Host = Gateway> = Omit<AdminRoute<Host>, 'tag'>

const NOTHING = z.strictObject({})

/** Defines a route that answers with JSON. */
export function defineRoute<
  Host,
  Answer extends object,
  const Path extends string,
  Query = Record<string, never>,
  Body = Record<string, never>,
>(
  definition: Definition<Path, Query, Body> & {
    readonly answer: z.ZodType<Answer>
    run(call: CheckedCall<Host, Path, NoInfer<Query>, NoInfer<Body>>): Promise<NoInfer<Answer>>
  },
): UntaggedRoute<Host> {
  const { run } = definition
  const answers = ['application/json']
  return { ...factsOf(definition), answers, run: async (call) => ({ json: await run(checked(call, definition)) }) }
}

/** Defines a route that answers with a file or another handler's stream. */
export function defineRawRoute<
  Host,
  const Path extends string,
  Query = Record<string, never>,
  Body = Record<string, never>,
>(
  definition: Definition<Path, Query, Body> & {
    readonly answers: readonly string[]
    run(call: CheckedCall<Host, Path, NoInfer<Query>, NoInfer<Body>>): Promise<Exclude<AdminAnswer, { json: unknown }>>
  },
): UntaggedRoute<Host> {
  const { answers, run } = definition
  return { ...factsOf(definition), answers, run: async (call) => run(checked(call, definition)) }
}

function factsOf<Query, Body>(definition: Definition<string, Query, Body> & { readonly answer?: z.ZodType }) {
  const { query, body, answer, scope = 'read', ...facts } = definition
  const schemas = { scope, query, body, answer }
  if ('get' in facts) return { ...facts, ...schemas, method: 'GET' as const, path: facts.get }
  if ('post' in facts) return { ...facts, ...schemas, method: 'POST' as const, path: facts.post }
  return { ...facts, ...schemas, method: 'PATCH' as const, path: facts.patch }
}

/** Adds a tag to routes, by which the OpenAPI document groups them. */
export function routesOf<Host>(tag: string, routes: readonly UntaggedRoute<Host>[]): readonly AdminRoute<Host>[] {
  return routes.map((route) => ({ ...route, tag }))
}

/** @throws GatewayError `invalid_request` naming the parameter or field. */
function checked<Host, Path extends string, Query, Body>(
  { params, query, body, ...call }: AdminCall<Host>,
  { query: querySchema = NOTHING, body: bodySchema = NOTHING }: { query?: z.ZodType; body?: z.ZodType },
): CheckedCall<Host, Path, Query, Body> {
  return {
    ...call,
    params: params as PathParams<Path>,
    query: checkRequest<Query>(querySchema, parametersOf(query, querySchema)),
    body: checkRequest<Body>(bodySchema, body ?? {}),
  }
}

/** @throws GatewayError `invalid_request` for an unknown or repeated parameter: it is unclear which value of a repeated one applies. */
function parametersOf(query: URLSearchParams, schema: z.ZodType): Record<string, string> {
  const parameters = new Map<string, string>()
  for (const [name, value] of query) {
    if (schema instanceof z.ZodObject && !Object.hasOwn(schema.shape, name))
      throw unknownParameter(name, Object.keys(schema.shape))
    if (parameters.has(name))
      throw new GatewayError('invalid_request', { message: `${name}: is given twice`, param: name })
    parameters.set(name, value)
  }
  return Object.fromEntries(parameters)
}

function unknownParameter(name: string, known: readonly string[]): GatewayError {
  const hint = known.length === 0 ? 'it takes none' : hintAt(name, known)
  const message = `The query: there is no parameter ${JSON.stringify(name)} here; ${hint}`
  return new GatewayError('invalid_request', { message, param: name })
}

/** @throws GatewayError `permission_denied` if the operator does not have the scope. */
export function checkScope({ name, can }: Operator, scope: OperatorScope): void {
  if (can.includes(scope)) return
  throw new GatewayError('permission_denied', { message: `The operator ${name} may not do this: it takes "${scope}".` })
}

/** @throws GatewayError `permission_denied` if the operator does not have all scopes of the route. */
export function checkScopes(
  operator: Operator,
  { scope, alsoScope = scope }: Pick<AdminRoute, 'scope' | 'alsoScope'>,
): void {
  checkScope(operator, scope)
  checkScope(operator, alsoScope)
}

/** Creates a 404 for the object in the path. */
export function notFound(kind: string, name: string, hint?: string): GatewayError {
  const message = `there is no ${kind} ${JSON.stringify(name)}${hint === undefined ? '' : `; ${hint}`}`
  return new GatewayError('invalid_request', { status: 404, message, publicCode: 'not_found' })
}

/**
 * Returns the object in the path.
 * @throws GatewayError `invalid_request` with status 404 if it does not exist.
 */
export function existing<Value>(kind: string, name: string, found: Value | undefined): Value {
  if (found === undefined) throw notFound(kind, name)
  return found
}

/**
 * Returns the id of a money change: the operator's, or one derived from the Idempotency-Key, so that the ledger itself makes the
 * change only once, at any time. Returns `undefined` if the request has neither.
 */
export function changeId(
  given: string | undefined,
  { operator, idempotencyKey }: Pick<AdminCall, 'operator' | 'idempotencyKey'>,
): string | undefined {
  if (given !== undefined || idempotencyKey === undefined) return given
  const digest = createHash('sha256').update(`${operator.name} ${idempotencyKey}`).digest('hex')
  return `admin_${digest.slice(0, 32)}`
}

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

const OPERATOR_KEY_MEMBERS = memberNames<OperatorKey>()('key name can')

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

const MAX_CHECK_MS = 10_000

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
      if (typeof key !== 'string' || key.length < MIN_OPERATOR_KEY || /\s/.test(key))
        throw new TypeError(`operatorKeys: a key must have at least ${MIN_OPERATOR_KEY} characters and no spaces`)
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
      timer = this.#clock.schedule(MAX_CHECK_MS, () => reject(new Error('authorize took too long')))
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
