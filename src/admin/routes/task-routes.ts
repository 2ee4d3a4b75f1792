import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { DEFAULT_SECRET_OVERLAP_MS } from '../../gateway/webhooks.ts'
import { type Administration, defineRoute, existing, notFound, type UntaggedRoute } from '../admin-route.ts'
import { countOf, id, listObject, listOfObjects, pageQuery, timeMs } from '../objects/fields.ts'
import { deliveryObject, deliverySchema, deliveryState, taskObject, taskSchema, taskState } from '../objects/task.ts'

/** Routes of accounts' tasks. */
export const TASK_ROUTES: readonly UntaggedRoute[] = [
  defineRoute({
    id: 'list_all_tasks',
    get: '/tasks',
    summary: 'List tasks of all accounts, newest first',
    query: z.strictObject({ account: id.optional(), state: taskState.optional(), ...pageQuery }),
    answer: listOfObjects(taskSchema),
    async run({ gateway, operator, query: { account, state, after: cursor, limit } }) {
      const { tasks, next } = await gateway.tasks.listAll({ accountId: account, state, cursor, limit: countOf(limit) })
      const listed = tasks.map((task) => taskObject({ task, operator }))
      return listObject(listed, next)
    },
  }),
  defineRoute({
    id: 'list_tasks',
    get: '/accounts/{account}/tasks',
    summary: 'List tasks of an account, newest first',
    query: z.strictObject(pageQuery),
    answer: listOfObjects(taskSchema),
    async run({ gateway, operator, params: { account }, query: { after, limit } }) {
      const { tasks, hasMore } = await gateway.tasks.list(account, { after, limit: countOf(limit) })
      const listed = tasks.map((task) => taskObject({ task, operator }))
      return listObject(listed, hasMore ? tasks.at(-1)?.id : undefined)
    },
  }),
  defineRoute({
    id: 'get_task',
    get: '/accounts/{account}/tasks/{task}',
    summary: 'Show one task, by the gateway’s id or the vendor’s',
    answer: taskSchema,
    async run({ gateway, operator, params: { account, task: id } }) {
      return taskObject({ task: existing('task', id, await gateway.tasks.get(account, id)), operator })
    },
  }),
  defineRoute({
    id: 'cancel_task',
    post: '/accounts/{account}/tasks/{task}/cancel',
    summary: 'Cancel a batch, a background answer, or a video that its vendor has not begun',
    scope: 'write',
    target: 'task',
    showsContent: true,
    answer: taskSchema,
    async run({ gateway, operator, params: { account, task: id } }) {
      return taskObject({ task: existing('task', id, await gateway.tasks.cancel(account, id)), operator })
    },
  }),
]

/** Routes of messages about tasks, and of the secrets that sign them. */
export const WEBHOOK_ROUTES: readonly UntaggedRoute<Administration>[] = [
  defineRoute({
    id: 'list_all_deliveries',
    get: '/deliveries',
    summary: 'List webhook messages of all accounts, newest first, with their newest 50 attempts',
    query: z.strictObject({ account: id.optional(), state: deliveryState.optional(), ...pageQuery }),
    answer: listOfObjects(deliverySchema),
    async run({ gateway, query: { account, state, after: cursor, limit } }) {
      const { deliveries, next } = await gateway.webhooks.listAll({
        accountId: account,
        state,
        cursor,
        limit: countOf(limit),
      })
      return listObject(deliveries.map(deliveryObject), next)
    },
  }),
  defineRoute({
    id: 'list_deliveries',
    get: '/accounts/{account}/tasks/{task}/deliveries',
    summary: 'List webhook messages about a task, oldest first, with their newest 50 attempts',
    answer: listOfObjects(deliverySchema),
    async run({ gateway, params: { account, task } }) {
      const deliveries = await gateway.webhooks.deliveries(account, task)
      return listObject(deliveries.map(deliveryObject), undefined)
    },
  }),
  defineRoute({
    id: 'resend_delivery',
    post: '/accounts/{account}/deliveries/{delivery}/resend',
    summary: 'Send a webhook message again, whatever its state',
    scope: 'write',
    target: 'delivery',
    answer: z.strictObject({ object: z.literal('delivery.resend'), delivery: id, resent: z.literal(true) }),
    async run({ gateway, params: { account, delivery } }) {
      if (!(await gateway.webhooks.resend(account, delivery))) throw notFound('webhook message', delivery)
      return { object: 'delivery.resend' as const, delivery, resent: true as const }
    },
  }),
  defineRoute({
    id: 'read_webhook_secret',
    get: '/accounts/{account}/webhook_secret',
    summary: 'Show the secret that signs the webhook messages of an account; creates one if there is none',
    // The scope is `write`, because the secret can sign messages in the gateway's name.
    scope: 'write',
    secret: 'secret',
    answer: z.strictObject({ object: z.literal('webhook.secret'), account: id, secret: z.string() }),
    async run({ gateway: { accounts, webhooks }, isReadOnly, params: { account } }) {
      if (isReadOnly) {
        const message = 'Changes are disabled here, and reading a secret creates one if there is none.'
        throw new GatewayError('method_not_allowed', { message })
      }
      existing('account', account, await accounts.get(account))
      return { object: 'webhook.secret' as const, account, secret: await webhooks.secret(account) }
    },
  }),
  defineRoute({
    id: 'rotate_webhook_secret',
    post: '/accounts/{account}/webhook_secret',
    summary: 'Give an account a new webhook secret; older ones still sign during the overlap',
    scope: 'write',
    secret: 'secret',
    body: z.strictObject({ overlap_ms: z.number().min(0).optional() }),
    answer: z.strictObject({
      object: z.literal('webhook.secret'),
      account: id,
      /** The secret, or null if the request was repeated. */
      secret: z.string().nullable(),
      /** End of the time in which older secrets still sign. */
      older_until_ms: timeMs,
    }),
    async run({ gateway: { accounts, webhooks }, clock, params: { account }, body }) {
      existing('account', account, await accounts.get(account))
      const { overlap_ms: overlapMs = DEFAULT_SECRET_OVERLAP_MS } = body
      const secret = await webhooks.rotateSecret(account, { overlapMs })
      const older_until_ms = Math.floor(clock.now() + overlapMs)
      return { object: 'webhook.secret' as const, account, secret, older_until_ms }
    },
  }),
]
