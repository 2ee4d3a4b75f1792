import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type LooseRequest, translated } from './chat-call.ts'

interface RequestFixture {
  readonly upstream: string
  readonly chat: LooseRequest
  readonly body: unknown
  readonly dropped: readonly string[]
}

const DIRECTORY = new URL('./fixtures/requests/', import.meta.url)

describe('golden requests to Anthropic', () => {
  it.each(readdirSync(DIRECTORY))('turns the chat body of %s into exactly its Messages body', (file) => {
    const fixture = JSON.parse(readFileSync(new URL(file, DIRECTORY), 'utf8')) as RequestFixture

    const { body, dropped } = translated(fixture.chat, {
      upstream: fixture.upstream,
      stream: fixture.chat['stream'] === true,
    })

    expect(body).toStrictEqual(fixture.body)
    expect([...dropped].sort()).toEqual(fixture.dropped)
  })
})
