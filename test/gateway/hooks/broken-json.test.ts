import { afterEach, expect, test } from 'vitest'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway
afterEach(() => started.close())

test.each(['garbage', 'half-json', 'empty'])(
  'answers a whole chat answer that is %s with 502 and no charge',
  async (fault) => {
    started = await startGateway()
    const before = await started.account()
    const response = await started.post('/v1/chat/completions', chatBody('chat-relayed', `[[fault:${fault}]] hello`))
    const body = (await response.json()) as { error: { code: string } }
    await started.ended(response)

    expect(response.status).toBe(502)
    expect(body.error.code).toBe('upstream_invalid_response')
    expect(await started.account()).toEqual(before)
  },
)
