import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { memberSpans } from '../../../src/vendors/dashscope/member-spans.ts'

function found(text: string): { input: string | undefined; parameters: string | undefined } {
  const bytes = Buffer.from(text)
  const { input, parameters } = memberSpans(bytes, ['input', 'parameters'])
  return {
    input: input && bytes.toString('utf8', input.start, input.end),
    parameters: parameters && bytes.toString('utf8', parameters.start, parameters.end),
  }
}

describe('the spans of members', () => {
  it.each([
    ['{"input":{},"parameters":{}}', '{}', '{}'],
    [
      ' {\n "parameters" : { "a" : [ 1 , "}" ] } ,\t"model" : "m" , "input" :{"b":"\\"{"}}',
      '{"b":"\\"{"}',
      '{ "a" : [ 1 , "}" ] }',
    ],
    ['{"model":1.50,"input":-1e3}', '-1e3', undefined],
    ['{"input":null,"parameters":true }', 'null', 'true'],
    ['{"other":{"input":1,"parameters":2},"x":["input"]}', undefined, undefined],
    ['{"x":"input","input":"parameters"}', '"parameters"', undefined],
    ['{"inpu\\u0074":{},"parameters":{}}', undefined, '{}'],
    ['{}', undefined, undefined],
    ['[{"input":1}]', undefined, undefined],
    ['', undefined, undefined],
    ['{"input":', undefined, undefined],
    ['{"input":"x', undefined, undefined],
    ['{"input":{"a":1', undefined, undefined],
    ['{"input"', undefined, undefined],
    ['{"input', undefined, undefined],
  ])('stand in %s where %s and %s are', (text, input, parameters) => {
    expect(found(text)).toEqual({ input, parameters })
  })

  test('hold the values that a reader finds, whatever stands around them', () => {
    const names = fc.constantFrom('input', 'parameters', 'model', 'user', 'inputs', 'é')
    fc.assert(
      fc.property(fc.dictionary(names, fc.jsonValue()), fc.constantFrom(undefined, 1, '\t'), (body, indent) => {
        const { input, parameters } = found(JSON.stringify(body, undefined, indent))

        if (input !== undefined) expect(JSON.parse(input)).toEqual(JSON.parse(JSON.stringify(body['input'])))
        expect(input === undefined).toBe(!Object.hasOwn(body, 'input'))
        expect(parameters === undefined).toBe(!Object.hasOwn(body, 'parameters'))
        if (parameters !== undefined)
          expect(JSON.parse(parameters)).toEqual(JSON.parse(JSON.stringify(body['parameters'])))
      }),
      { numRuns: 1_000 },
    )
  })
})
