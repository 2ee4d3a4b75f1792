import { Buffer } from 'node:buffer'
import * as z from 'zod'
import type { GatewayRequest } from '../../core/exchange.ts'
import { type AdminRoute, changeId, checkScope, defineRawRoute, defineRoute, existing } from '../admin-route.ts'
import { id } from '../objects/fields.ts'
import { OPERATOR_SCOPES } from '../operators.ts'
import { storedReference } from '../stored-references.ts'

/** What concerns the operator himself. */
export const OPERATOR_ROUTES: readonly AdminRoute[] = [
  defineRoute({
    id: 'get_session',
    method: 'GET',
    path: '/session',
    tag: 'operator',
    summary: 'Who asks, what he may do, and whether changes are allowed here',
    scope: 'read',
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
    method: 'POST',
    path: '/playground',
    tag: 'operator',
    summary:
      'Makes a call in the name of an account, which is charged as any other; what the account has stored takes the scope `content` too',
    scope: 'play',
    target: 'account',
    body: z.strictObject({
      account: id,
      /** A path of the public API that takes a JSON body: `/v1/chat/completions`. */
      path: z.string().regex(/^\/v1\/[\w/-]+$/),
      request: z.record(z.string(), z.unknown()),
    }),
    answers: ['application/json', 'text/event-stream'],
    async run(call) {
      const { gateway, operator } = call
      const { account: accountId, path, request } = call.body
      // The answer, or the model's next one, would show what the account has stored.
      if (storedReference(path, request) !== undefined) checkScope(operator, 'content')
      const account = existing('account', accountId, await gateway.accounts.get(accountId))
      const caller = gateway.exchangeAs({
        accountId,
        keyId: `operator:${operator.name}`,
        tier: account.tier,
        isFrozen: account.frozen !== undefined,
      })
      // Of the operator alone: the account's callers have keys of their own.
      const idempotencyKey = changeId(undefined, call)
      return { forward: (sink) => caller.handle(jsonRequest(path, request, idempotencyKey), sink) }
    },
  }),
]

function jsonRequest(path: string, body: object, idempotencyKey: string | undefined): GatewayRequest {
  const bytes = Buffer.from(JSON.stringify(body))
  const headers = new Map([['content-type', 'application/json']])
  if (idempotencyKey !== undefined) headers.set('idempotency-key', idempotencyKey)
  return {
    method: 'POST',
    path,
    query: '',
    header: (name) => headers.get(name),
    readBody: (limitBytes, listener) => {
      if (bytes.byteLength > limitBytes) listener('too_large', [])
      else listener(undefined, [bytes])
    },
  }
}
