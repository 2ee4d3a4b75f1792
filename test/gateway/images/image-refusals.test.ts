import { afterEach, describe, expect, test } from 'vitest'
import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'
import { expectNoCharge, expectNothingSent, openaiStyle, upstreamStyle } from './image-error-shapes.ts'
import { EDITS, editBody, editForm, everyShape, IMAGES, interaction, multimodal, png } from './image-requests.ts'

let started: StartedGateway

afterEach(() => started.close())

describe('errors before the model is known', () => {
  const BOTH: readonly (readonly [string, number, Partial<GatewayOptions>, Record<string, string>, string, string])[] =
    [
      ['401 for an unknown key', 401, {}, { authorization: 'Bearer sk-nobody' }, 'InvalidApiKey', 'invalid_api_key'],
      ['401 for no key', 401, {}, { authorization: '' }, 'InvalidApiKey', 'invalid_api_key'],
      ['413 for a body above the limit', 413, { bodyLimitBytes: 20 }, {}, 'InvalidParameter', 'body_too_large'],
      [
        '415 for another type of content',
        415,
        {},
        { 'content-type': 'text/plain' },
        'InvalidParameter',
        'unsupported_media_type',
      ],
    ]

  test.each(BOTH)('%s carries both shapes on generations', async (_name, status, options, headers, code, errorCode) => {
    started = await startGateway(options)

    const answer = await started.post(IMAGES, multimodal('a boat'), headers)

    expect(answer.status).toBe(status)
    expect(await answer.json()).toEqual(
      upstreamStyle(code, {
        type: status === 401 ? 'authentication_error' : 'invalid_request_error',
        param: null,
        code: errorCode,
      }),
    )
    expect(answer.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
    await expectNothingSent(started)
  })

  test.each(BOTH)(
    '%s is in the style of OpenAI on edits',
    async (_name, status, options, headers, _code, errorCode) => {
      started = await startGateway(options)

      const answer = await started.post(EDITS, editBody('more light'), headers)

      expect(answer.status).toBe(status)
      const type = status === 401 ? 'authentication_error' : 'invalid_request_error'
      expect(await answer.json()).toEqual(openaiStyle(null, errorCode, type))
      await expectNothingSent(started)
    },
  )

  test('answers a stream of the multimodal shape, which does not stream, with 400 and no unread image', async () => {
    started = await startGateway()

    const answer = await started.post(IMAGES, { ...multimodal('a boat'), stream: true })

    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ code: 'InvalidParameter', message: expect.stringMatching(/^stream: /) })
    await expectNothingSent(started)
  })

  test.each(['stream', 'partial_images'])('answers %s with 400 if the model cannot stream edits', async (field) => {
    started = await startGateway()
    const value = field === 'stream' ? true : 2

    const answer = await started.post(EDITS, { ...editBody('more light'), model: 'de-2', [field]: value })

    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ error: { param: field, code: 'unsupported_parameter' } })
    await expectNothingSent(started)
  })

  test('answers a form on generations with 415 and the expected type', async () => {
    started = await startGateway()

    const answer = await fetch(`${started.url}${IMAGES}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TEST_KEY}` },
      body: editForm({}, [{ name: 'image', bytes: png(16) }]),
    })

    expect(answer.status).toBe(415)
    expect((await answer.json()).message).toContain('application/json')
    await expectNothingSent(started)
  })

  test('answers malformed JSON with 400 InvalidParameter', async () => {
    started = await startGateway()

    const answer = await fetch(`${started.url}${IMAGES}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
      body: '{"model":',
    })

    expect(answer.status).toBe(400)
    expect(await answer.json()).toEqual(
      upstreamStyle('InvalidParameter', { type: 'invalid_request_error', param: null, code: 'invalid_json' }),
    )
    await expectNothingSent(started)
  })
})

describe.each(everyShape('a paper boat'))('in the shape %s', (shape, path, body) => {
  const isMultimodal = shape === 'multimodal'

  test('402 is minimal', async () => {
    started = await startGateway({
      keys: [
        { key: 'sk-poor-0123456789', account: 'acct_poor' },
        { key: TEST_KEY, account: TEST_ACCOUNT },
      ],
    })

    const answer = await started.post(path, body, { authorization: 'Bearer sk-poor-0123456789' })

    expect(answer.status).toBe(402)
    expect(await answer.json()).toEqual({
      error: { message: expect.stringMatching(/^This request needs \$0\.\d+, available \$0; add credit\.$/) },
    })
    await expectNothingSent(started)
  })

  test('403 for a key without this model', async () => {
    started = await startGateway()
    const { key } = await started.gateway.keys.create({
      accountId: TEST_ACCOUNT,
      scopes: { models: ['cl-sonnet-4-6'] },
    })

    const answer = await started.post(path, body, { authorization: `Bearer ${key}` })

    expect(answer.status).toBe(403)
    expect(await answer.json()).toEqual(
      isMultimodal
        ? upstreamStyle('AccessDenied', { type: 'permission_error', param: 'model', code: 'AccessDenied' })
        : openaiStyle('model', 'permission_denied', 'permission_error'),
    )
    await expectNothingSent(started)
  })

  test('403 for a key without this endpoint', async () => {
    started = await startGateway()
    const { key } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, scopes: { endpoints: ['chat'] } })

    const answer = await started.post(path, body, { authorization: `Bearer ${key}` })

    expect(answer.status).toBe(403)
    expect(await answer.json()).toEqual(
      path === IMAGES
        ? upstreamStyle('AccessDenied', { type: 'permission_error', param: null, code: 'permission_denied' })
        : openaiStyle(null, 'permission_denied', 'permission_error'),
    )
    await expectNothingSent(started)
  })

  const LIMITED = upstreamStyle('Throttling.RateQuota', {
    type: 'rate_limit_error',
    param: null,
    code: 'Throttling.RateQuota',
  })

  test('429 by rate carries both shapes', async () => {
    started = await startGateway({ limits: { requestsPerMinute: 1 } })
    const first = await started.post(path, body)
    await first.arrayBuffer()
    const { balance } = await started.account()

    const answer = await started.post(path, body)

    expect([first.status, answer.status]).toEqual([200, 429])
    expect(await answer.json()).toEqual(LIMITED)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(started.sandbox.requests).toHaveLength(1)
    expect(await started.account()).toEqual({ balance, held: 0n })
  })

  test('429 by concurrency carries both shapes', async () => {
    started = await startGateway({ limits: { concurrency: 1 } })
    started.sandbox.fault({ kind: 'hang' })
    const waiting = rawPost(started.url, path, body)
    await started.sandbox.nextRequest()

    const answer = await started.post(path, body)
    const ending = started.nextEnded()
    waiting.leave()
    await ending

    expect(answer.status).toBe(429)
    expect(await answer.json()).toEqual(LIMITED)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(started.sandbox.requests).toHaveLength(1)
    expect((await started.account()).held).toBe(0n)
  })

  test('429 by the vendor carries both shapes and a retry-after', async () => {
    started = await startGateway()
    started.sandbox.fault({ kind: 'status', status: 429, retryAfterSeconds: 7 })

    const answer = await started.post(path, body)

    expect(answer.status).toBe(429)
    expect(await answer.json()).toEqual(LIMITED)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(started.sandbox.requests).toHaveLength(1)
    await expectNoCharge(started)
  })

  test('503 while the vendor is unavailable', async () => {
    started = await startGateway()
    started.sandbox.fault({ kind: 'status', status: 503, times: 5 })

    const answer = await started.post(path, body)

    expect(answer.status).toBe(503)
    expect(await answer.json()).toEqual(
      isMultimodal
        ? upstreamStyle('ModelUnavailable', { type: 'server_error', param: null, code: 'ModelUnavailable' })
        : openaiStyle(null, 'upstream_unavailable', 'server_error'),
    )
    expect(answer.headers.get('retry-after')).toBe('5')
    await expectNoCharge(started)
  })

  test.each(['quota', 'bad-key'] as const)(
    "503 and an event when the vendor refuses the operator's account (%s)",
    async (kind) => {
      started = await startGateway()
      started.sandbox.fault({ kind, times: 5 })

      const answer = await started.post(path, body)
      await answer.arrayBuffer()

      expect(answer.status).toBe(503)
      expect(started.events).toContainEqual(expect.objectContaining({ type: 'vendor-account-problem' }))
      await expectNoCharge(started)
    },
  )

  test('503 when a part of the usage has no price', async () => {
    const model = body['model'] as string
    const prices: PriceFile = {
      currency: 'USD',
      // Output alone, and a size that is not the one asked for.
      prices: isMultimodal
        ? [{ model, meter: 'image', amount: '0.05', when: { size: '1664*928' } }]
        : [{ model, meter: 'output_token', amount: '10', per: 1_000_000 }],
    }
    started = await startGateway({ prices })

    const answer = await started.post(path, body)

    expect(answer.status).toBe(400)
    expect(await answer.json()).toEqual(
      isMultimodal
        ? upstreamStyle('model_not_priced', { type: 'invalid_request_error', param: 'model', code: 'model_not_priced' })
        : openaiStyle('model', 'model_not_priced'),
    )
    await expectNothingSent(started)
  })

  test.each(['garbage', 'empty', 'half-json', 'html', 'redirect', 'error-event'] as const)(
    'an answer of the vendor that cannot be used (%s) is an error without a charge',
    async (kind) => {
      started = await startGateway()
      started.sandbox.fault(kind === 'html' ? { kind, status: 502, times: 5 } : { kind, times: 5 })

      const answer = await started.post(path, body)
      const error = (await answer.json()) as { error: { code: string } }

      expect(answer.status).toBeGreaterThanOrEqual(500)
      expect(typeof error.error.code).toBe('string')
      await expectNoCharge(started)
    },
  )
})

describe('200 with status failed', () => {
  const REFUSED = interaction('a mug [[fault:blocked]]')

  test('a blocked interaction has no steps and is not charged', async () => {
    started = await startGateway()

    const answer = await started.post(IMAGES, REFUSED)
    const body = (await answer.json()) as { status: string; steps: unknown }

    expect(answer.status).toBe(200)
    expect([body.status, body.steps]).toEqual(['failed', []])
    expect((await started.ended(answer)).costNanoDollars).toBe(0n)
    await expectNoCharge(started)
  })

  test('does not charge a streamed one either', async () => {
    started = await startGateway()

    const answer = await started.post(IMAGES, { ...REFUSED, stream: true })
    const text = await answer.text()

    expect(answer.status).toBe(200)
    expect(text).toContain('"status":"failed"')
    expect((await started.ended(answer)).costNanoDollars).toBe(0n)
    await expectNoCharge(started)
  })
})
