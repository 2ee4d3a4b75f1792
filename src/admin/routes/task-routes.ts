import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { DEFAULT_SECRET_OVERLAP_MS } from '../../gateway/webhooks.ts'
import { type Administration, type AdminRoute, defineRoute, existing, notFound, paramOf } from '../admin-route.ts'
import { countOf, id, listObject, listOfObjects, pageQuery, timeMs } from '../objects/fields.ts'
import { deliveryObject, deliverySchema, deliveryState, taskObject, taskSchema, taskState } from '../objects/task.ts'

/** Routes of accounts' tasks. */
export const TASK_ROUTES: readonly AdminRoute[] = [
  defineRoute({
    id: 'list_all_tasks',
    method: 'GET',
    path: '/tasks',
    tag: 'tasks',
    summary: 'List tasks of all accounts, newest first',
    scope: 'read',
    query: z.strictObject({ account: id.optional(), state: taskState.optional(), ...pageQuery }),
    answer: listOfObjects(taskSchema),
    async run({ gateway, operator, query: { account, state, after: cursor, limit } }) {
      const { tasks, next } = await gateway.tasks.listAll({ accountId: account, state, cursor, limit: countOf(limit) })
      return listObject(
        tasks.map((task) => taskObject({ task, operator })),
        next,
      )
    },
  }),
  defineRoute({
    id: 'list_tasks',
    method: 'GET',
    path: '/accounts/{account}/tasks',
    tag: 'tasks',
    summary: 'List tasks of an account, newest first',
    scope: 'read',
    query: z.strictObject(pageQuery),
    answer: listOfObjects(taskSchema),
    async run(call) {
      const { after, limit } = call.query
      const options = { after, ...(limit === undefined ? {} : { limit: countOf(limit) }) }
      const page = await call.gateway.tasks.list(paramOf(call, 'account'), options)
      return listObject(
        page.tasks.map((task) => taskObject({ task, operator: call.operator })),
        page.hasMore ? page.tasks.at(-1)?.id : undefined,
      )
    },
  }),
  defineRoute({
    id: 'get_task',
    method: 'GET',
    path: '/accounts/{account}/tasks/{task}',
    tag: 'tasks',
    summary: 'Show one task, by the gateway’s id or the vendor’s',
    scope: 'read',
    answer: taskSchema,
    async run(call) {
      const taskId = paramOf(call, 'task')
      const task = existing('task', taskId, await call.gateway.tasks.get(paramOf(call, 'account'), taskId))
      return taskObject({ task, operator: call.operator })
    },
  }),
  defineRoute({
    id: 'cancel_task',
    method: 'POST',
    path: '/accounts/{account}/tasks/{task}/cancel',
    tag: 'tasks',
    summary: 'Cancel a batch, a background answer, or a video that its vendor has not begun',
    scope: 'write',
    target: 'task',
    showsContent: true,
    answer: taskSchema,
    async run(call) {
      const taskId = paramOf(call, 'task')
      const task = existing('task', taskId, await call.gateway.tasks.cancel(paramOf(call, 'account'), taskId))
      return taskObject({ task, operator: call.operator })
    },
  }),
]

/** Routes of messages about tasks, and of the secrets that sign them. */
export const WEBHOOK_ROUTES: readonly AdminRoute<Administration>[] = [
  defineRoute({
    id: 'list_all_deliveries',
    method: 'GET',
    path: '/deliveries',
    tag: 'tasks',
    summary: 'List webhook messages of all accounts, newest first, with their newest 50 attempts',
    scope: 'read',
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
    method: 'GET',
    path: '/accounts/{account}/tasks/{task}/deliveries',
    tag: 'tasks',
    summary: 'List webhook messages about a task, oldest first, with their newest 50 attempts',
    scope: 'read',
    answer: listOfObjects(deliverySchema),
    async run(call) {
      const deliveries = await call.gateway.webhooks.deliveries(paramOf(call, 'account'), paramOf(call, 'task'))
      return listObject(deliveries.map(deliveryObject), undefined)
    },
  }),
  defineRoute({
    id: 'resend_delivery',
    method: 'POST',
    path: '/accounts/{account}/deliveries/{delivery}/resend',
    tag: 'tasks',
    summary: 'Send a webhook message again, whatever its state',
    scope: 'write',
    target: 'delivery',
    answer: z.strictObject({ object: z.literal('delivery.resend'), delivery: id, resent: z.literal(true) }),
    async run(call) {
      const delivery = paramOf(call, 'delivery')
      if (!(await call.gateway.webhooks.resend(paramOf(call, 'account'), delivery)))
        throw notFound('webhook message', delivery)
      return { object: 'delivery.resend' as const, delivery, resent: true as const }
    },
  }),
  defineRoute({
    id: 'read_webhook_secret',
    method: 'GET',
    path: '/accounts/{account}/webhook_secret',
    tag: 'tasks',
    summary: 'Show the secret that signs the webhook messages of an account; creates one if there is none',
    // The scope is `write`, because the secret can sign messages in the gateway's name.
    scope: 'write',
    secret: 'secret',
    answer: z.strictObject({ object: z.literal('webhook.secret'), account: id, secret: z.string() }),
    async run(call) {
      if (call.isReadOnly) {
        const message = 'Changes are disabled here, and reading a secret creates one if there is none.'
        throw new GatewayError('method_not_allowed', { message })
      }
      const account = paramOf(call, 'account')
      existing('account', account, await call.gateway.accounts.get(account))
      const secret = await call.gateway.webhooks.secret(account)
      return { object: 'webhook.secret' as const, account, secret }
    },
  }),
  defineRoute({
    id: 'rotate_webhook_secret',
    method: 'POST',
    path: '/accounts/{account}/webhook_secret',
    tag: 'tasks',
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
    async run(call) {
      const account = paramOf(call, 'account')
      existing('account', account, await call.gateway.accounts.get(account))
      const { overlap_ms: overlapMs = DEFAULT_SECRET_OVERLAP_MS } = call.body
      const secret = await call.gateway.webhooks.rotateSecret(account, { overlapMs })
      const older_until_ms = Math.floor(call.clock.now() + overlapMs)
      return { object: 'webhook.secret' as const, account, secret, older_until_ms }
    },
  }),
]
