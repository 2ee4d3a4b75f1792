import * as z from 'zod'
import type { KeyRecord } from '../../stores/api-keys.ts'
import type { RateLimits } from '../../stores/rate-limiter.ts'
import { type Administration, defineRoute, existing, notFound, type UntaggedRoute } from '../admin-route.ts'
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
export const KEY_ROUTES: readonly UntaggedRoute<Administration>[] = [
  defineRoute({
    id: 'list_keys',
    get: '/keys',
    summary: 'List keys of one account, or of all, oldest first',
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
    post: '/keys',
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
      const { account: accountId, label, endpoints, models, limits, tags } = body
      const { key, record } = await gateway.keys.create({
        accountId,
        label,
        scopes: { ...(endpoints && { endpoints }), ...(models && { models }) },
        limits: limits && limitsOf(limits),
        spendingCap: capOf(body.spending_cap) ?? undefined,
        namesEndUsers: body.names_end_users,
        tags,
        expiresAtMs: momentMs('expires_at', body.expires_at),
      })
      return { ...keyObject(record), key }
    },
  }),
  defineRoute({
    id: 'update_key',
    patch: '/keys/{key}',
    summary: 'Change limits, cap and trust of a key; null removes limits or cap',
    scope: 'write',
    body: z.strictObject({
      limits: rateLimits.nullable().optional(),
      spending_cap: periodLimit.nullable().optional(),
      names_end_users: z.boolean().optional(),
    }),
    answer: keySchema,
    async run({ gateway, params: { key }, body: { limits, spending_cap, names_end_users } }) {
      const change = {
        limits: limits == null ? limits : limitsOf(limits),
        spendingCap: capOf(spending_cap),
        namesEndUsers: names_end_users,
      }
      if (!(await gateway.keys.update(key, change))) throw notFound('key', key)
      return keyObject(await storedKey(gateway, key))
    },
  }),
  defineRoute({
    id: 'revoke_key',
    post: '/keys/{key}/revoke',
    summary: 'Revoke a key; gateways reject it within 5 seconds',
    scope: 'write',
    answer: keySchema,
    async run({ gateway, params: { key } }) {
      if (!(await gateway.keys.revoke(key))) throw notFound('key', key)
      return keyObject(await storedKey(gateway, key))
    },
  }),
  defineRoute({
    id: 'rotate_key',
    post: '/keys/{key}/rotate',
    summary: 'Replace a key; the old one expires after the overlap, and the new one is shown only once',
    scope: 'write',
    // A key can read the stored data of its account.
    alsoScope: 'content',
    secret: 'key',
    body: z.strictObject({ overlap_ms: z.number().min(0).optional() }),
    answer: madeKeySchema,
    async run({ gateway, params, body }) {
      const { key, record } = await gateway.keys.rotate(params.key, { overlapMs: body.overlap_ms })
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
