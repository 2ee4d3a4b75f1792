import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { IMAGES, interaction } from '../images/image-requests.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

const picture = (uri: string) => [
  { type: 'text', text: 'a boat' },
  { type: 'image', mime_type: 'image/png', uri },
]

describe.each([{}, { stream: true }])('an interaction %j', (rest) => {
  test.each([
    'https://generativelanguage.googleapis.com/v1beta/files/abc-123',
    'HTTPS://GenerativeLanguage.GoogleAPIs.com:443/v1beta/files/abc-123',
    'https://generativelanguage.googleapis.com./v1beta/files/abc-123',
  ])('cannot name a file that is kept at the vendor: %s', async (uri) => {
    const sent = started.sandbox.requests.length
    const answer = await started.post(IMAGES, interaction(picture(uri), rest))

    expect(await answer.json()).toMatchObject({ error: { param: 'input[1].uri' } })
    expect(answer.status).toBe(400)
    expect(started.sandbox.requests).toHaveLength(sent)
  })

  test.each([
    'https://cdn.example.com/v1beta/files/a.png',
    'https://storage.googleapis.com/bucket/a.png',
    'https://generativelanguage.googleapis.com.example.com/v1beta/files/a',
  ])('can name any other: %s', async (uri) => {
    const answer = await started.post(IMAGES, interaction(picture(uri), rest))
    const text = await answer.text()

    expect(answer.status, text).toBe(200)
  })
})
