import { afterEach, describe, expect, test } from 'vitest'
import { CREDIT } from '../gateway/images/image-error-shapes.ts'
import {
  editForm,
  everyShape,
  generation,
  IMAGES,
  interaction,
  png,
  postForm,
} from '../gateway/images/image-requests.ts'
import { rawPost } from '../support/raw-caller.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'

const KEY = { 'idempotency-key': 'order-1' }
const FORMS = everyShape('a paper boat').flatMap(([shape, path, body]) => [
  [shape, 'whole', path, body] as const,
  ...(shape === 'multimodal' ? [] : [[shape, 'stream', path, { ...body, stream: true }] as const]),
])

let started: StartedGateway

afterEach(() => started.close())

async function read(answer: Response): Promise<{ status: number; text: string; replayed: string | null }> {
  return { status: answer.status, text: await answer.text(), replayed: answer.headers.get('idempotent-replayed') }
}

describe.each(FORMS)('an Idempotency-Key in the shape %s (%s)', (_shape, _form, path, body) => {
  test('returns the same bytes again, and one image is generated and paid for', async () => {
    started = await startGateway()
    const first = await started.post(path, body, KEY)
    const original = await read(first)
    const { costNanoDollars } = await started.ended(first)

    const second = await started.post(path, body, KEY)
    const replay = await read(second)

    expect(original).toMatchObject({ status: 200, replayed: null })
    expect(replay).toEqual({ ...original, replayed: 'true' })
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'))
    expect(started.sandbox.requests).toHaveLength(1)
    expect(costNanoDollars).toBeGreaterThan(0n)
    expect(await started.account()).toEqual({ balance: CREDIT - costNanoDollars, held: 0n })
  })

  test('refuses another body with 422, and the same one with 409 while it is under way', async () => {
    started = await startGateway()
    started.sandbox.fault({ kind: 'delay', delayMs: 300 })
    const first = started.post(path, body, KEY)
    await started.sandbox.nextRequest()

    const during = await started.post(path, body, KEY)
    const other = await started.post(path, { ...body, user: 'somebody else' }, KEY)
    const original = await read(await first)

    expect([during.status, other.status, original.status]).toEqual([409, 422, 200])
    expect(during.headers.get('retry-after')).toBe('1')
    expect(started.sandbox.requests).toHaveLength(1)
    expect((await started.account()).held).toBe(0n)
  })

  test('is free again after a failure that nobody paid for', async () => {
    started = await startGateway()
    started.sandbox.fault({ kind: 'status', status: 400 })
    const refused = await read(await started.post(path, body, KEY))

    const answer = await read(await started.post(path, body, KEY))

    expect([refused.status, answer.status]).toEqual([400, 200])
    expect(answer.replayed).toBeNull()
  })
})

test('treats a form with another boundary as the same request, but not one with another image', async () => {
  started = await startGateway()
  const send = (side: number): Promise<Response> =>
    postForm(started.url, editForm({ quality: 'low' }, [{ name: 'image', bytes: png(side) }]), KEY)

  const first = await read(await send(64))
  const again = await read(await send(64))
  const other = await read(await send(32))

  expect(again).toEqual({ ...first, replayed: 'true' })
  expect(other.status).toBe(422)
  expect(started.sandbox.requests).toHaveLength(1)
})

test('the key of one account means nothing to another', async () => {
  started = await startGateway({
    keys: [
      { key: TEST_KEY, account: TEST_ACCOUNT },
      { key: 'sk-other-0123456789', account: 'acct_other' },
    ],
  })
  await started.gateway.accounts.credit('acct_other', '5')
  const body = generation('a paper boat')
  await read(await started.post(IMAGES, body, KEY))

  const foreign = await read(await started.post(IMAGES, body, { ...KEY, authorization: 'Bearer sk-other-0123456789' }))

  expect(foreign).toMatchObject({ status: 200, replayed: null })
  expect(started.sandbox.requests).toHaveLength(2)
})

test('a replayed interaction has the id that can be continued', async () => {
  started = await startGateway()
  const body = interaction('a mug')
  await read(await started.post(IMAGES, body, KEY))
  const replay = await read(await started.post(IMAGES, body, KEY))
  const { id } = JSON.parse(replay.text) as { id: string }

  const next = await started.post(IMAGES, interaction('make it green', { previous_interaction_id: id }))

  expect(next.status).toBe(200)
})

test('charges an image whose caller disconnected, and frees its key: there is no answer to repeat', async () => {
  started = await startGateway()
  started.sandbox.fault({ kind: 'hang' })
  const caller = rawPost(started.url, IMAGES, generation('a paper boat'))
  await started.sandbox.nextRequest()
  const ending = started.nextEnded()
  caller.leave()
  await ending

  const next = await read(await started.post(IMAGES, generation('a paper boat'), KEY))

  expect(next).toMatchObject({ status: 200, replayed: null })
  expect(started.sandbox.requests).toHaveLength(2)
})
