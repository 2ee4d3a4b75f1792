import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { checkWebhookSecret, newWebhookSecret, webhookHeaders } from '../../src/tasks/webhook-payload.ts'

const body = '{"type":"video.generation.completed","data":{"text":"née 日本語"}}'

function secretOf(byteLength: number): string {
  return `whsec_${Buffer.alloc(byteLength, 0xfb).toString('base64')}`
}

function headersOf(secrets: readonly string[], timestampSeconds = Math.floor(Date.now() / 1000)) {
  const flat = webhookHeaders({ secrets, id: 'msg_1', timestampSeconds, body })
  return Object.fromEntries(flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : [])))
}

describe('webhookHeaders', () => {
  test('gives the signature of the published example', () => {
    const headers = webhookHeaders({
      secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestampSeconds: 1614265330,
      body: '{"test": 2432232314}',
    })

    expect(headers).toEqual([
      ...['webhook-id', 'msg_p5jXN8AQM9LWM0D4loKWxJek'],
      ...['webhook-timestamp', '1614265330'],
      ...['webhook-signature', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='],
    ])
  })

  test.each([24, 25, 26, 64])('signs with %i bytes so that the public package agrees', (byteLength) => {
    const secret = secretOf(byteLength)

    expect(new Webhook(secret).verify(body, headersOf([secret]))).toEqual(JSON.parse(body))
  })

  test('signs once for each secret, newest first, and a receiver with either finds its own', () => {
    const [newer, older] = [newWebhookSecret(), newWebhookSecret()]

    const both = headersOf([newer, older])

    const signatures = both['webhook-signature']?.split(' ')
    expect(signatures?.[0]).toBe(headersOf([newer], Number(both['webhook-timestamp']))['webhook-signature'])
    expect(signatures).toHaveLength(2)
    for (const secret of [newer, older]) expect(new Webhook(secret).verify(body, both)).toEqual(JSON.parse(body))
    expect(() => new Webhook(newWebhookSecret()).verify(body, both)).toThrow('No matching signature')
  })

  test('does not sign with a secret that is too short', () => {
    expect(() => headersOf(['whsec_'])).toThrow(TypeError)
  })
})

describe('checkWebhookSecret', () => {
  test.each([24, 32, 64])('takes %i bytes and gives the text back', (byteLength) => {
    expect(checkWebhookSecret(secretOf(byteLength))).toBe(secretOf(byteLength))
  })

  test.each([
    ['an empty text', ''],
    ['the prefix alone', 'whsec_'],
    ['23 bytes', secretOf(23)],
    ['65 bytes', secretOf(65)],
    ['no prefix', Buffer.alloc(32, 1).toString('base64')],
    ['another prefix', `WHSEC_${Buffer.alloc(32, 1).toString('base64')}`],
    ['no padding', secretOf(32).replace('=', '')],
    ['the alphabet of URLs', `whsec_${Buffer.alloc(33, 0xfb).toString('base64url')}`],
    ['a space in it', `${secretOf(24)} `],
    ['words', 'whsec_this-is-not-base64-but-it-is-long-enough'],
  ])('refuses %s, and names the rule but not the text', (_what, text) => {
    const refused = (): string => checkWebhookSecret(text)

    expect(refused).toThrow(TypeError)
    expect(refused).toThrow(/^a webhook secret must be whsec_ and the padded base64 of 24 to 64 bytes$/)
  })

  test('rejects a value that is not a string', () => {
    const given: { webhookSecret: string } = JSON.parse('{"webhookSecret":12345678901234567890123456789012}')

    expect(() => checkWebhookSecret(given.webhookSecret)).toThrow(TypeError)
  })
})

test('new secrets pass the check and differ', () => {
  const secrets = Array.from({ length: 50 }, newWebhookSecret)

  expect(secrets.map(checkWebhookSecret)).toEqual(secrets)
  expect(new Set(secrets).size).toBe(50)
})
