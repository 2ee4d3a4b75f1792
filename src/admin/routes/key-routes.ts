import * as z from 'zod'
import type { KeyRecord } from '../../stores/api-keys.ts'
import type { RateLimits } from '../../stores/rate-limiter.ts'
import { type Administration, type AdminRoute, defineRoute, existing, notFound, paramOf } from '../admin-route.ts'
import { keyObject, keySchema, madeKeySchema } from '../objects/accounts.ts'
import {
  bodyMoment,
  countOf,
  id,
  label,
  listObject,
  listOfObjects,
  momentMs,
  pageQuery,
  periodLimit,
  rateLimits,
} from '../objects/fields.ts'
import { capOf } from './account-routes.ts'

/** Larger than in other lists, which start with the newest: few accounts have more keys. */
const DEFAULT_LIMIT = 1_000

const names = z.array(z.string().min(1).max(200)).min(1).max(1_000)

/** Routes of callers' keys. */
export const KEY_ROUTES: readonly AdminRoute<Administration>[] = [
  defineRoute({
    id: 'list_keys',
    method: 'GET',
    path: '/keys',
    tag: 'keys',
    summary: 'List keys of one account, or of all, oldest first',
    scope: 'read',
    query: z.strictObject({ account: z.string().optional(), ...pageQuery }),
    answer: listOfObjects(keySchema),
    async run({ gateway, query: { account, after, limit } }) {
      const page = await gateway.keys.page({
        accountId: account,
        cursor: after,
        limit: countOf(limit) ?? DEFAULT_LIMIT,
      })
      return listObject(page.keys.map(keyObject), page.next)
    },
  }),
  defineRoute({
    id: 'create_key',
    method: 'POST',
    path: '/keys',
    tag: 'keys',
    summary: 'Create a key, which is shown only once',
    scope: 'write',
    // A key can read the stored data of its account.
    alsoScope: 'content',
    target: 'account',
    secret: 'key',
    body: z.strictObject({
      account: id,
      label: label.optional(),
      /** Endpoints and models that the key may use. If omitted, all. */
      endpoints: names.optional(),
      models: names.optional(),
      limits: rateLimits.optional(),
      spending_cap: periodLimit.optional(),
      names_end_users: z.boolean().optional(),
      /** Tags of every call, for usage records. */
      tags: z.array(z.string()).max(8).optional(),
      expires_at: bodyMoment.optional(),
    }),
    answer: madeKeySchema,
    async run({ gateway, body }) {
      const { endpoints, models, limits, names_end_users, tags, expires_at } = body
      const cap = capOf(body.spending_cap)
      const { key, record } = await gateway.keys.create({
        accountId: body.account,
        scopes: { ...(endpoints === undefined ? {} : { endpoints }), ...(models === undefined ? {} : { models }) },
        ...(body.label === undefined ? {} : { label: body.label }),
        ...(limits === undefined ? {} : { limits: limitsOf(limits) }),
        ...(cap == null ? {} : { spendingCap: cap }),
        ...(names_end_users === undefined ? {} : { namesEndUsers: names_end_users }),
        ...(tags === undefined ? {} : { tags }),
        ...(expires_at === undefined ? {} : { expiresAtMs: momentMs('expires_at', expires_at) }),
      })
      return { ...keyObject(record), key }
    },
  }),
  defineRoute({
    id: 'update_key',
    method: 'PATCH',
    path: '/keys/{key}',
    tag: 'keys',
    summary: 'Change limits, cap and trust of a key; null removes limits or cap',
    scope: 'write',
    body: z.strictObject({
      limits: rateLimits.nullable().optional(),
      spending_cap: periodLimit.nullable().optional(),
      names_end_users: z.boolean().optional(),
    }),
    answer: keySchema,
    async run(call) {
      const keyId = paramOf(call, 'key')
      const { limits, spending_cap, names_end_users } = call.body
      const change = {
        limits: limits == null ? limits : limitsOf(limits),
        spendingCap: capOf(spending_cap),
        namesEndUsers: names_end_users,
      }
      if (!(await call.gateway.keys.update(keyId, change))) throw notFound('key', keyId)
      return keyObject(await storedKey(call.gateway, keyId))
    },
  }),
  defineRoute({
    id: 'revoke_key',
    method: 'POST',
    path: '/keys/{key}/revoke',
    tag: 'keys',
    summary: 'Revoke a key; gateways reject it within 5 seconds',
    scope: 'write',
    answer: keySchema,
    async run(call) {
      const keyId = paramOf(call, 'key')
      if (!(await call.gateway.keys.revoke(keyId))) throw notFound('key', keyId)
      return keyObject(await storedKey(call.gateway, keyId))
    },
  }),
  defineRoute({
    id: 'rotate_key',
    method: 'POST',
    path: '/keys/{key}/rotate',
    tag: 'keys',
    summary: 'Replace a key; the old one expires after the overlap, and the new one is shown only once',
    scope: 'write',
    // A key can read the stored data of its account.
    alsoScope: 'content',
    secret: 'key',
    body: z.strictObject({ overlap_ms: z.number().min(0).optional() }),
    answer: madeKeySchema,
    async run(call) {
      const { overlap_ms: overlapMs } = call.body
      const options = overlapMs === undefined ? {} : { overlapMs }
      const { key, record } = await call.gateway.keys.rotate(paramOf(call, 'key'), options)
      return { ...keyObject(record), key }
    },
  }),
]

async function storedKey(gateway: Administration, keyId: string): Promise<KeyRecord> {
  return existing('key', keyId, await gateway.keys.find(keyId))
}

function limitsOf(limits: z.output<typeof rateLimits>): RateLimits {
  return {
    requestsPerMinute: limits.requests_per_minute ?? undefined,
    tokensPerMinute: limits.tokens_per_minute ?? undefined,
    concurrency: limits.concurrency ?? undefined,
  }
}
