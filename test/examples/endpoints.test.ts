import { describe, expect, test } from 'vitest'
import { endOfExample } from './support/run-example.ts'

describe('the example', () => {
  test.each([
    [
      'batches',
      [
        'held: true',
        'noun: You said: What is a noun?',
        'verb: You said: What is a verb?',
        'pronoun: You said: What is a pronoun?',
        expect.stringMatching(/^completed: cost 0\.0\d+, balance 0\.99\d+, held 0$/),
      ],
    ],
    [
      'transcription',
      [
        expect.stringMatching(/^This recording is [\d.]+ seconds long\.$/),
        '1',
        expect.stringMatching(/^00:00:00,000 --> 00:00:/),
        expect.stringMatching(/^This recording is/),
      ],
    ],
    [
      'rerank',
      [
        expect.stringMatching(/^\d\.\d\d how to fold a boat of paper$/),
        expect.stringMatching(/^\d\.\d\d a paper boat/),
      ],
    ],
    [
      'moderations',
      ['a paper boat: fine', 'an ode to violence: flagged', 'You said: a paper boat', '400 request_denied'],
    ],
    [
      'estimate',
      [
        expect.stringMatching(/^at most 0\.000\d+ for 100 tokens of output$/),
        expect.stringMatching(/^it cost 0\.000\d+, which is less$/),
      ],
    ],
  ])('%s answers offline', async (name, lines) => {
    const { code, output } = await endOfExample(name, {})

    expect([code, output.trim().split('\n')]).toEqual([0, lines])
  })
})
