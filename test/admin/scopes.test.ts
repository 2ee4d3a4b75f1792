import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fetchHandler } from '../../src/adapters/fetch.ts'
import { adminHandler } from '../../src/admin/admin-handler.ts'
import { OPERATOR_SCOPES, type OperatorScope } from '../../src/admin/admin-route.ts'
import { ADMIN_ROUTES } from '../../src/admin/routes/admin-routes.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../support/start-gateway.ts'

const OTHER_ACCOUNT = 'acct_other'
/** Part of every prompt and answer of both accounts. */
const CANARY = 'canary-prompt'

/** Objects of an account. `params` has the value of each parameter of a path. */
interface OwnObjects {
  readonly account: string
  readonly apiKey: string
  readonly response: string
  readonly open: string
  readonly params: Readonly<Record<string, string>>
}

let started: StartedGateway
let ask: (request: Request) => Promise<Response>
const objects: OwnObjects[] = []

/** Asks as an operator of the host with these scopes. */
async function asOperator(can: readonly OperatorScope[], method: string, path: string, body: unknown) {
  const response = await ask(
    new Request(`http://host.example/v1${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        'x-signalbox-console': '1',
        'x-scopes': can.join(','),
      },
      body: method === 'GET' ? null : JSON.stringify(body),
    }),
  )
  return { status: response.status, text: await response.text() }
}

async function objectsOf(account: string): Promise<OwnObjects> {
  await started.gateway.accounts.create({ id: account })
  await started.gateway.accounts.credit(account, '10')
  const { key: apiKey, record } = await started.gateway.keys.create({ accountId: account })
  const headers = { authorization: `Bearer ${apiKey}` }
  const answer = await started.post('/v1/responses', { model: 'chat-relayed', input: CANARY }, headers)
  const { id: response } = (await answer.json()) as { id: string }
  const failing = { model: 'chat-relayed', input: `[[fault:${CANARY}]]`, background: true }
  const failed = (await (await started.post('/v1/responses', failing, headers)).json()) as { id: string }
  await started.taskEnded(failed.id)
  started.sandbox.fault({ kind: 'hang', times: 1 })
  const hanging = { model: 'chat-relayed', input: CANARY, background: true }
  const { id: open } = (await (await started.post('/v1/responses', hanging, headers)).json()) as { id: string }
  const submitted = await started.post(
    '/v1/videos/generations',
    {
      ...{ model: 'wv2.6-t2v', duration: 4, resolution: '720p', input: { prompt: CANARY } },
      webhook_url: `${started.url}/nowhere`,
    },
    headers,
  )
  const task = String((await submitted.json()).task_id)
  await started.taskEnded(task)
  const [delivery] = await started.gateway.webhooks.deliveries(account, task)
  const { entries } = await started.gateway.accounts.journal(account)
  const charge = entries.find(({ kind }) => kind === 'charge')
  const [hold] = (await started.gateway.holds.list({ accountId: account })).holds
  const [vendor] = started.gateway.routes().vendors
  const params = {
    account,
    key: record.id,
    task,
    delivery: delivery!.id,
    hold: hold!.id,
    charge: charge!.id,
    credential: vendor!.keys[0]!.credentialId,
    request: charge!.holdId!,
    month: new Date().toISOString().slice(0, 7),
  }
  return { account, apiKey, response, open, params }
}

beforeAll(async () => {
  started = await startGateway({ taskPollIntervalMs: 20, drainMs: 10 }, { videoPendingMs: 5, videoRunningMs: 5 })
  const handler = adminHandler(started.gateway, {
    authorize: (request) => ({
      name: 'host',
      can: (request.header('x-scopes') ?? '').split(',').filter((scope) => scope !== '') as OperatorScope[],
    }),
  })
  ask = fetchHandler(handler)
  for (const account of [TEST_ACCOUNT, OTHER_ACCOUNT]) objects.push(await objectsOf(account))
})
afterAll(() => started.close())

interface ExpectedRoute {
  readonly needs: readonly OperatorScope[]
  readonly query?: string
  /** Other objects than those of {@link OwnObjects.params}. */
  params?(own: OwnObjects): Readonly<Record<string, string>>
  body?(own: OwnObjects): object
}

const TODAY = new Date().toISOString().slice(0, 10)
const READ: ExpectedRoute = { needs: ['read'] }
const WRITE: ExpectedRoute = { needs: ['write'] }

/** Scopes and a valid request of every route. A new route is listed here, with a decision about who may use it. */
const EXPECTED: Readonly<Record<string, ExpectedRoute>> = {
  get_session: READ,
  play: {
    needs: ['play'],
    body: ({ account }) => ({ account, path: '/v1/chat/completions', request: chatBody('cl-sonnet-4-6', 'hello') }),
  },
  list_accounts: READ,
  create_account: { needs: ['write'], body: ({ account }) => ({ id: account }) },
  get_account: READ,
  update_account: { needs: ['write'], body: () => ({ name: 'name' }) },
  get_spending: READ,
  freeze_account: { needs: ['write'], body: () => ({ reason: 'test' }) },
  unfreeze_account: WRITE,
  credit_account: { needs: ['money'], body: () => ({ amount: '1' }) },
  adjust_account: { needs: ['money'], body: () => ({ amount: '1', reason: 'test' }) },
  refund_charge: {
    needs: ['money'],
    body: ({ params }) => ({ charge: params['charge'], amount: '0.00000001', reason: 'test' }),
  },
  list_journal: READ,
  export_journal: READ,
  get_statement: READ,
  list_holds: READ,
  list_changes: READ,
  settle_hold: { needs: ['money'], body: () => ({ amount: '0.0001' }) },
  void_hold: { needs: ['money'] },
  list_keys: READ,
  create_key: { needs: ['write', 'content'], body: ({ account }) => ({ account }) },
  update_key: { needs: ['write'], body: () => ({ names_end_users: false }) },
  rotate_key: { needs: ['write', 'content'] },
  revoke_key: WRITE,
  query_usage: READ,
  export_usage: READ,
  verify_usage: { needs: ['read'], query: `?from=${TODAY}` },
  rebuild_usage: { needs: ['write'], body: () => ({ from: TODAY }) },
  list_requests: READ,
  get_request: READ,
  list_vendors: READ,
  eject_vendor_key: { needs: ['write'], body: () => ({ for_ms: 1 }) },
  restore_vendor_key: WRITE,
  list_models: READ,
  list_retiring_models: READ,
  list_prices: READ,
  list_all_tasks: READ,
  list_all_deliveries: READ,
  list_tasks: READ,
  get_task: READ,
  cancel_task: { needs: ['write'], params: ({ open }) => ({ task: open }) },
  list_deliveries: READ,
  resend_delivery: WRITE,
  read_webhook_secret: WRITE,
  rotate_webhook_secret: { needs: ['write'], body: () => ({ overlap_ms: 0 }) },
}

/** All 32 sets of scopes, in an order in which each set follows its subsets. */
const SCOPE_SETS = Array.from({ length: 2 ** OPERATOR_SCOPES.length }, (_, bits) =>
  OPERATOR_SCOPES.filter((_scope, place) => (bits & (1 << place)) !== 0),
)

/** Rotation reads a key that is not revoked yet, and the other way round: routes are tried in this order. */
const ROUTES = ADMIN_ROUTES.toSorted((a, b) => Number(a.id === 'revoke_key') - Number(b.id === 'revoke_key'))

test('every admin route is listed with the scopes that it requires', () => {
  expect(ADMIN_ROUTES.map(({ id }) => id).toSorted()).toEqual(Object.keys(EXPECTED).toSorted())
})

describe.each(ROUTES.map((route) => [route.id, route] as const))('%s', (id, { method, path }) => {
  const { needs, query = '', params, body } = EXPECTED[id] ?? READ

  test('accepts the listed scopes only, and shows no prompt without "content", for both accounts', async () => {
    for (const own of objects) {
      const named = { ...own.params, ...params?.(own) }
      const target = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(named[name]!))
      const statuses = new Set<number>()
      for (const can of SCOPE_SETS) {
        const isAllowed = needs.every((scope) => can.includes(scope))
        const { status, text } = await asOperator(can, method, `${target}${query}`, body?.(own) ?? {})
        expect(status === 403, `${can.join(' ')}: ${status} ${text}`).toBe(!isAllowed)
        if (isAllowed) statuses.add(status)
        if (!can.includes('content')) expect(text, can.join(' ')).not.toContain(CANARY)
      }
      expect([...statuses][0], 'the status of the first allowed request').toBe(200)
    }
  })
})

describe('the playground without the scope "content"', () => {
  const without: OperatorScope[] = ['read', 'write', 'money', 'play']
  const play = (own: OwnObjects, path: string, request: object, can: readonly OperatorScope[]) =>
    asOperator(can, 'POST', '/playground', { account: own.account, path, request })
  const RESPONSE = { model: 'chat-relayed', input: 'Repeat the prompt.' }

  test.each<[string, (own: OwnObjects) => [path: string, request: object]]>([
    ['cancel an answer', ({ response }) => [`/v1/responses/${response}/cancel`, {}]],
    ['cancel a background answer', ({ open }) => [`/v1/responses/${open}/cancel`, {}]],
    ['continue an answer', ({ response }) => ['/v1/responses', { ...RESPONSE, previous_response_id: response }]],
    ['continue a conversation', () => ['/v1/responses', { ...RESPONSE, conversation: 'conv_1' }]],
    ['continue a conversation by its object', () => ['/v1/responses', { ...RESPONSE, conversation: { id: 'conv_1' } }]],
    ['name an item', () => ['/v1/responses', { ...RESPONSE, input: [{ type: 'item_reference', id: 'msg_1' }] }]],
    ['name an item without a type', () => ['/v1/responses', { ...RESPONSE, input: [{ id: 'msg_1' }] }]],
    ['create a conversation', () => ['/v1/conversations', {}]],
    ['read the items of a conversation', () => ['/v1/conversations/conv_1/items', { items: [] }]],
    ['cancel a batch', () => ['/v1/batches/batch_1/cancel', {}]],
    ['submit a batch', () => ['/v1/batches', { input_file_id: 'file_1', endpoint: '/v1/responses' }]],
    ['cancel a video', ({ params }) => [`/v1/videos/generations/${params['task']}/cancel`, {}]],
    ['continue an interaction', () => ['/v1/images/generations', { previous_interaction_id: 'x' }]],
    [
      'read a file',
      () => [
        '/v1/responses',
        { ...RESPONSE, input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] },
      ],
    ],
    ['use a container', () => ['/v1/messages', { model: 'm', max_tokens: 9, messages: [], container: 'container_1' }]],
  ])('does not %s of an account', async (_title, requestOf) => {
    for (const own of objects) {
      const [path, request] = requestOf(own)
      const refused = await play(own, path, request, without)
      expect(refused.status).toBe(403)
      expect(refused.text).toContain('it takes \\"content\\"')
      expect(refused.text).not.toContain(CANARY)
    }
    // With the scope the request reaches the gateway.
    const [path, request] = requestOf(objects[0]!)
    expect((await play(objects[0]!, path, request, ['play', 'content'])).text).not.toContain('may not do this')
  })

  test('makes new calls with earlier turns, calls of tools and schemas of any members', async () => {
    const tool = {
      name: 'find',
      description: 'Finds a file.',
      parameters: { type: 'object', properties: { file_id: { type: 'string' } }, required: ['file_id'] },
    }
    const call = { id: 'call_1', type: 'function', function: { name: 'find', arguments: '{"file_id":"f"}' } }
    const request = {
      model: 'cl-sonnet-4-6',
      messages: [
        { role: 'user', content: 'Find it.' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'found' },
      ],
      tools: [{ type: 'function', function: tool }],
    }
    const answer = await play(objects[0]!, '/v1/chat/completions', request, ['play'])

    expect(answer).toMatchObject({ status: 200 })
  })
})

test('a key that is rotated or created without "content" is never shown', async () => {
  const [own] = objects
  const { account, params } = own!
  const without = ['read', 'write', 'money', 'play'] as const
  const created = await asOperator(without, 'POST', '/keys', { account })
  const rotated = await asOperator(without, 'POST', `/keys/${params['key']}/rotate`, {})

  expect([created.status, rotated.status]).toEqual([403, 403])
  expect(`${created.text}${rotated.text}`).not.toContain('sk-')
})
