import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink } from '../core/exchange.ts'
import { hintAt } from '../core/known-members.ts'
import { type JsonSchema, jsonSchemaOf } from '../endpoints/json-schema.ts'
import { checkRequest } from '../endpoints/request-field.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Operator, OperatorScope } from './operators.ts'

/** Parts that routes work with. */
export interface AdminParts {
  readonly gateway: Gateway
  readonly clock: Clock
  readonly isReadOnly: boolean
}

/** Request of an identified operator. */
export interface AdminCall extends AdminParts {
  readonly operator: Operator
  readonly requestId: string
  /** Address of the client, if it is known. */
  readonly address: string | undefined
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

export interface AdminRoute {
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
  readonly schemas: () => {
    readonly query: JsonSchema | undefined
    readonly body: JsonSchema | undefined
    readonly answer: JsonSchema | undefined
  }
  /** @throws GatewayError */
  run(call: AdminCall): Promise<AdminAnswer>
}

/** Input of a route that is defined with schemas. */
interface CheckedCall<Query, Body> extends Omit<AdminCall, 'query' | 'body'> {
  readonly query: Query
  readonly body: Body
}

type RouteFacts = Pick<
  AdminRoute,
  | 'id'
  | 'method'
  | 'path'
  | 'tag'
  | 'summary'
  | 'scope'
  | 'alsoScope'
  | 'target'
  | 'creates'
  | 'secret'
  | 'showsContent'
>

const NOTHING = z.strictObject({})

/** Defines a route that answers with JSON. */
export function defineRoute<Answer extends object, Query = Record<string, never>, Body = Record<string, never>>(
  definition: RouteFacts & {
    readonly query?: z.ZodType<Query>
    readonly body?: z.ZodType<Body>
    readonly answer: z.ZodType<Answer>
    run(call: CheckedCall<NoInfer<Query>, NoInfer<Body>>): Promise<NoInfer<Answer>>
  },
): AdminRoute {
  const { query, body, answer, run, ...facts } = definition
  return {
    ...facts,
    answers: ['application/json'],
    schemas: () => schemasOf(query, body, answer),
    run: async (call) => ({ json: await run(checked<Query, Body>(call, query, body)) }),
  }
}

/** Defines a route that answers with a file or another handler's stream. */
export function defineRawRoute<Query = Record<string, never>, Body = Record<string, never>>(
  definition: RouteFacts & {
    readonly query?: z.ZodType<Query>
    readonly body?: z.ZodType<Body>
    readonly answers: readonly string[]
    run(call: CheckedCall<NoInfer<Query>, NoInfer<Body>>): Promise<Exclude<AdminAnswer, { json: unknown }>>
  },
): AdminRoute {
  const { query, body, run, ...facts } = definition
  return {
    ...facts,
    schemas: () => schemasOf(query, body, undefined),
    run: async (call) => run(checked<Query, Body>(call, query, body)),
  }
}

function schemasOf(query: z.ZodType | undefined, body: z.ZodType | undefined, answer: z.ZodType | undefined) {
  return {
    query: query && jsonSchemaOf(query, 'input'),
    body: body && jsonSchemaOf(body, 'input'),
    answer: answer && jsonSchemaOf(answer, 'output'),
  }
}

/** @throws GatewayError `invalid_request` naming the parameter or field. */
function checked<Query, Body>(
  { query, body, ...call }: AdminCall,
  querySchema: z.ZodType = NOTHING,
  bodySchema: z.ZodType = NOTHING,
): CheckedCall<Query, Body> {
  return {
    ...call,
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

/** Returns the single parameter of a path. */
export function paramOf({ params }: Pick<AdminCall, 'params'>, name: string): string {
  return params[name] ?? ''
}

/** @throws GatewayError `permission_denied` if the operator does not have the scope. */
export function checkScope({ name, can }: Operator, scope: OperatorScope): void {
  if (can.includes(scope)) return
  throw new GatewayError('permission_denied', { message: `The operator ${name} may not do this: it takes "${scope}".` })
}

/** @throws GatewayError `permission_denied` if the operator does not have all scopes of the route. */
export function checkScopes(operator: Operator, { scope, alsoScope = scope }: AdminRoute): void {
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
