import { describe, expect, test } from 'vitest'
import type { ReasoningEffort } from '../../../src/endpoints/chat/chat-request.ts'
import { chatCall, sentBody, vendor } from './gemini-call.ts'

type Row = [upstream: string, effort: ReasoningEffort, thinking: object | undefined, changed: boolean]

const level = (thinkingLevel: string) => ({ thinkingLevel, includeThoughts: true })
const budget = (thinkingBudget: number) => ({ thinkingBudget, includeThoughts: true })

describe('reasoning_effort becomes what the model has, and a change is reported', () => {
  test.each<Row>([
    ['gemini-2.5-flash', 'none', { thinkingBudget: 0 }, false],
    ['gemini-2.5-flash', 'minimal', budget(1024), true],
    ['gemini-2.5-flash', 'low', budget(1024), false],
    ['gemini-2.5-flash-lite', 'medium', budget(8192), false],
    ['gemini-2.5-flash', 'high', budget(24_576), false],
    ['gemini-2.5-flash', 'max', budget(24_576), true],
    ['gemini-2.5-pro', 'none', { thinkingBudget: 1024 }, true],
    ['gemini-3-flash-preview', 'none', { thinkingLevel: 'MINIMAL' }, true],
    ['gemini-3-flash-preview', 'minimal', level('MINIMAL'), false],
    ['gemini-3.6-flash', 'minimal', level('MINIMAL'), false],
    ['gemini-3.7-flash', 'minimal', level('LOW'), true],
    ['gemini-3.7-flash-lite', 'minimal', level('MINIMAL'), false],
    ['gemini-flash-latest', 'minimal', level('LOW'), true],
    ['gemini-flash-lite-latest', 'minimal', level('MINIMAL'), false],
    ['gemini-3.1-pro', 'minimal', level('LOW'), true],
    ['gemini-3.1-pro', 'medium', level('MEDIUM'), false],
    ['gemini-3-pro-preview', 'medium', level('HIGH'), true],
    ['gemini-3.1-pro', 'xhigh', level('HIGH'), true],
    ['gemini-4-hydrogen', 'xhigh', level('XHIGH'), false],
    ['gemini-4-hydrogen', 'max', level('XHIGH'), true],
    ['models/gemini-2.5-pro', 'low', budget(1024), false],
    ['somebody-elses-model', 'minimal', level('LOW'), true],
    ['somebody-elses-model', 'high', level('HIGH'), false],
    ['gemini-2.0-flash', 'high', undefined, true],
    ['gemini-2.0-flash', 'none', undefined, false],
  ])('%s asked for %s', (upstream, effort, thinking, changed) => {
    const call = chatCall({ reasoning_effort: effort }, { upstream })

    expect(sentBody(call)['generationConfig']).toEqual(
      thinking === undefined ? undefined : { thinkingConfig: thinking },
    )
    expect(vendor.chat?.toWire(call).dropped).toEqual(changed ? ['reasoning_effort'] : [])
  })
})
