import { Buffer } from 'node:buffer'
import * as z from 'zod'
import type { GatewayRequest } from '../../core/exchange.ts'
import { isJsonObject } from '../../core/json.ts'
import { ENDPOINTS } from '../../endpoints/registry.ts'
import { innerRequest } from '../../pipeline/idempotent-request.ts'
import {
  type Administration,
  changeId,
  checkScope,
  defineRawRoute,
  defineRoute,
  existing,
  OPERATOR_SCOPES,
  type UntaggedRoute,
} from '../admin-route.ts'
import { auditEntryObject, auditEntrySchema } from '../objects/accounts.ts'
import { countOf, id, listObject, listOfObjects, moment, momentMs, pageQuery } from '../objects/fields.ts'

/** Paths of requests that start a new call. All other paths concern stored data of an account. */
const NEW_CALLS: ReadonlySet<string> = new Set(ENDPOINTS.map(({ path }) => path))

/** Members that refer to stored answers, conversations, files or containers of an account. */
const REFERENCE = /^(?:conversation|container)$|_ids?$/
/** Ids that a conversation itself contains: those of tool calls and of users. */
const HARMLESS: ReadonlySet<string> = new Set(['call_id', 'tool_call_id', 'tool_use_id', 'user_id'])

/** Routes that concern the signed-in operator. */
export const OPERATOR_ROUTES: readonly UntaggedRoute[] = [
  defineRoute({
    id: 'get_session',
    get: '/session',
    summary: 'Show the signed-in operator, their permissions, and whether changes are allowed',
    answer: z.strictObject({
      object: z.literal('session'),
      operator: z.string(),
      can: z.array(z.enum(OPERATOR_SCOPES)),
      read_only: z.boolean(),
      billing: z.enum(['on', 'off']),
    }),
    async run({ gateway, operator, isReadOnly }) {
      const billing = gateway.prices() === undefined ? ('off' as const) : ('on' as const)
      return {
        object: 'session' as const,
        operator: operator.name,
        can: [...operator.can],
        read_only: isReadOnly,
        billing,
      }
    },
  }),
  defineRawRoute({
    id: 'play',
    post: '/playground',
    summary:
      'Call an endpoint for an account, which pays for it; stored data of the account needs the scope `content` too',
    scope: 'play',
    target: 'account',
    body: z.strictObject({
      account: id,
      /** Path of the public API that accepts a JSON body: `/v1/chat/completions`. */
      path: z.string().regex(/^\/v1\/[\w/-]+$/),
      request: z.record(z.string(), z.unknown()),
    }),
    answers: ['application/json', 'text/event-stream'],
    async run(call) {
      const { gateway, operator } = call
      const { account: accountId, path, request } = call.body
      // The answer, or the model's next one, would show stored data of the account.
      if (storedReference(path, request) !== undefined) checkScope(operator, 'content')
      const account = existing('account', accountId, await gateway.accounts.get(accountId))
      const caller = gateway.exchangeAs({
        accountId,
        keyId: `operator:${operator.name}`,
        tier: account.tier,
        isFrozen: account.frozen !== undefined,
      })
      // Key of the operator only: the account's callers have their own keys.
      const idempotencyKey = changeId(undefined, call)
      return { forward: (sink) => caller.handle(jsonRequest(path, request, idempotencyKey), sink) }
    },
  }),
]

function jsonRequest(path: string, body: object, idempotencyKey: string | undefined): GatewayRequest {
  const inner = innerRequest(path, Buffer.from(JSON.stringify(body)))
  return { ...inner, header: (name) => (name === 'idempotency-key' ? idempotencyKey : inner.header(name)) }
}

/**
 * Returns the part of a request that may read or change stored data of an account: its path, or the name of a member. Returns
 * `undefined` for a new call that contains all of its input.
 */
function storedReference(path: string, request: object): string | undefined {
  if (!NEW_CALLS.has(path)) return path
  const pending: unknown[] = [request]
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (Array.isArray(value)) for (const entry of value) if (isContainer(entry)) pending.push(entry)
    if (!isJsonObject(value)) continue
    const isNamed = typeof value['type'] === 'string' || typeof value['role'] === 'string'
    if (value['type'] === 'item_reference' || (!isNamed && typeof value['id'] === 'string')) return 'id'
    for (const [name, member] of Object.entries(value)) {
      // Properties of a schema may have such names too; their values are objects.
      const isId = typeof member === 'string' || Array.isArray(member)
      if (isId && REFERENCE.test(name) && !HARMLESS.has(name)) return name
      if (isContainer(member)) pending.push(member)
    }
  }
  return undefined
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** Routes of changes by operators. */
export const AUDIT_ROUTES: readonly UntaggedRoute<Administration>[] = [
  defineRoute({
    id: 'list_changes',
    get: '/audit',
    summary: 'List changes by operators of the last 365 days, newest first',
    query: z.strictObject({ subject: id.optional(), from: moment.optional(), to: moment.optional(), ...pageQuery }),
    answer: listOfObjects(auditEntrySchema),
    async run({ gateway, query: { subject, from, to, after: cursor, limit } }) {
      const page = await gateway.audit.list({
        subject,
        fromMs: momentMs('from', from),
        untilMs: momentMs('to', to),
        cursor,
        limit: countOf(limit),
      })
      return listObject(page.entries.map(auditEntryObject), page.next)
    },
  }),
]
