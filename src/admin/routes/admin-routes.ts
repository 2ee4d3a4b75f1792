import { Buffer } from 'node:buffer'
import * as z from 'zod'
import { noticeStartMs, retirementOf } from '../../catalog/catalog.ts'
import type { GatewayRequest } from '../../core/exchange.ts'
import { isJsonObject } from '../../core/json.ts'
import { ENDPOINTS } from '../../endpoints/registry.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { innerRequest } from '../../pipeline/idempotent-request.ts'
import { DAY_MS } from '../../usage/usage-store.ts'
import {
  type Administration,
  type AdminRoute,
  changeId,
  checkScope,
  defineRawRoute,
  defineRoute,
  existing,
  OPERATOR_SCOPES,
  routesOf,
  type UntaggedRoute,
} from '../admin-route.ts'
import { auditEntryObject, auditEntrySchema } from '../objects/accounts.ts'
import {
  catalogObject,
  catalogSchema,
  modelObject,
  modelSchema,
  priceObject,
  priceSchema,
  retiringModelObject,
  retiringModelSchema,
  vendorObject,
  vendorSchema,
} from '../objects/catalog.ts'
import { countOf, id, listObject, listOfObjects, moment, momentMs, pageQuery } from '../objects/fields.ts'
import { ACCOUNT_ROUTES, BOOK_ROUTES, HOLD_ROUTES, KEY_ROUTES } from './account-routes.ts'
import { REQUEST_ROUTES, TASK_ROUTES, USAGE_ROUTES, WEBHOOK_ROUTES } from './request-routes.ts'

/** Paths of requests that start a new call. All other paths concern stored data of an account. */
const NEW_CALLS: ReadonlySet<string> = new Set(ENDPOINTS.map(({ path }) => path))

/** Members that refer to stored answers, conversations, files or containers of an account. */
const REFERENCE = /^(?:conversation|container)$|_ids?$/
/** Ids that a conversation itself contains: those of tool calls and of users. */
const HARMLESS: ReadonlySet<string> = new Set(['call_id', 'tool_call_id', 'tool_use_id', 'user_id'])

/** Routes that concern the signed-in operator. */
const OPERATOR_ROUTES: readonly UntaggedRoute[] = [
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
const AUDIT_ROUTES: readonly UntaggedRoute<Administration>[] = [
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

/** Number of earlier days whose calls the list of retiring models counts, in addition to today. */
const SPEND_DAYS = 29
/** Maximum number of called models that are examined, the most expensive first. */
const MAX_RETIRING = 1_000

/** Routes of vendors with their health. */
const VENDOR_ROUTES: readonly UntaggedRoute[] = [
  defineRoute({
    id: 'list_vendors',
    get: '/vendors',
    summary: 'List vendors and the operator’s keys with circuits, load and latencies, as seen from this process',
    answer: listOfObjects(vendorSchema).extend({ retries_left: z.number(), catalog: catalogSchema }),
    async run({ gateway }) {
      const { vendors, retriesLeft } = gateway.routes()
      const catalog = catalogObject((await gateway.health()).catalog)
      return { ...listObject(vendors.map(vendorObject), undefined), retries_left: retriesLeft, catalog }
    },
  }),
  defineRoute({
    id: 'eject_vendor_key',
    post: '/vendor_keys/{credential}/eject',
    summary: 'Take a vendor key of this process out of use for a while; one request probes it then',
    scope: 'write',
    /** Default: one hour. */
    body: z.strictObject({ for_ms: z.number().positive().optional() }),
    answer: vendorSchema,
    async run({ gateway, params: { credential }, body }) {
      vendorOf(gateway, credential)
      gateway.vendorKeys.eject(credential, { forMs: body.for_ms })
      return vendorOf(gateway, credential)
    },
  }),
  defineRoute({
    id: 'restore_vendor_key',
    post: '/vendor_keys/{credential}/restore',
    summary: 'Close the circuit of a vendor key in this process, whatever opened it',
    scope: 'write',
    answer: vendorSchema,
    async run({ gateway, params: { credential } }) {
      vendorOf(gateway, credential)
      gateway.vendorKeys.restore(credential)
      return vendorOf(gateway, credential)
    },
  }),
]

/** Routes of models and prices. */
const MODEL_ROUTES: readonly UntaggedRoute[] = [
  defineRoute({
    id: 'list_models',
    get: '/models',
    summary: 'List models of the catalog with their routes',
    answer: listOfObjects(modelSchema),
    async run({ gateway }) {
      const listed = new Map(gateway.models().map((model) => [model.id, model]))
      const rows = gateway.catalog.list().flatMap((row) => {
        const model = listed.get(row.id)
        return model === undefined ? [] : [modelObject({ listed: model, row })]
      })
      return listObject(rows, undefined)
    },
  }),
  defineRoute({
    id: 'list_retiring_models',
    get: '/models/retiring',
    summary:
      'List models called in the last 30 days that their vendors end within 60 days or have ended, with their spend',
    answer: listOfObjects(retiringModelSchema),
    async run({ gateway: { catalog, usage }, clock }) {
      const nowMs = clock.now()
      const { rows } = await usage.query({ from: nowMs - SPEND_DAYS * DAY_MS, groupBy: ['model'], top: MAX_RETIRING })
      const retiring = rows.flatMap((row) => {
        const model = catalog.find(row.model ?? '')
        const retires = model && retirementOf(model, catalog.source)
        if (model === undefined || retires === undefined || nowMs < noticeStartMs(retires)) return []
        return [retiringModelObject({ model, retires, row })]
      })
      return listObject(retiring, undefined)
    },
  }),
  defineRoute({
    id: 'list_prices',
    get: '/prices',
    summary: 'List prices of models; billing is "off" if there are none',
    answer: listOfObjects(priceSchema).extend({ billing: z.enum(['on', 'off']), currency: z.literal('USD') }),
    async run({ gateway }) {
      const prices = gateway.prices()
      const billing = prices === undefined ? ('off' as const) : ('on' as const)
      return { ...listObject((prices ?? []).map(priceObject), undefined), billing, currency: 'USD' as const }
    },
  }),
]

/** Returns the vendor of a key. @throws GatewayError `invalid_request` with status 404 if there is no such key. */
function vendorOf(gateway: Gateway, credential: string) {
  const report = gateway
    .routes()
    .vendors.find(({ keys }) => keys.some(({ credentialId }) => credentialId === credential))
  return vendorObject(existing('vendor key', credential, report))
}

/** Routes that need only the store of a gateway. The command line runs them too. */
export const STORE_ROUTES: readonly AdminRoute<Administration>[] = [
  ...routesOf('accounts', ACCOUNT_ROUTES),
  ...routesOf('money', BOOK_ROUTES),
  ...routesOf('holds', HOLD_ROUTES),
  ...routesOf('keys', KEY_ROUTES),
  ...routesOf('usage', USAGE_ROUTES),
  ...routesOf('requests', REQUEST_ROUTES),
  ...routesOf('tasks', WEBHOOK_ROUTES),
  ...routesOf('audit', AUDIT_ROUTES),
]

/** All routes of the admin API. */
export const ADMIN_ROUTES: readonly AdminRoute[] = [
  ...routesOf('operator', OPERATOR_ROUTES),
  ...STORE_ROUTES,
  ...routesOf('vendors', VENDOR_ROUTES),
  ...routesOf('models', MODEL_ROUTES),
  ...routesOf('tasks', TASK_ROUTES),
]
