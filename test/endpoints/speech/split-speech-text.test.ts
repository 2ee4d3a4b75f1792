import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { splitSpeechText } from '../../../src/endpoints/speech/speech-endpoint.ts'

test('a text that fits is left as it is, white space included', () => {
  expect(splitSpeechText('  one. two. ', 12)).toEqual(['  one. two. '])
  expect(splitSpeechText('x'.repeat(5000), undefined)).toEqual(['x'.repeat(5000)])
})

describe('a longer text is cut', () => {
  test.each<[string, string, number, string[]]>([
    ['at the last end of a sentence', 'One is. Two is. Three is.', 20, ['One is. Two is.', 'Three is.']],
    ['behind closing quotation marks', 'He said "no." Then left.', 16, ['He said "no."', 'Then left.']],
    ['at a mark that fills the room to its end', 'abcdefgh. ijklm.', 9, ['abcdefgh.', 'ijklm.']],
    ['at an ideographic full stop, which needs no space', '今天好。明天也好。', 12, ['今天好。', '明天也好。']],
    ['at a line break', 'first line\nsecond line', 14, ['first line', 'second line']],
    ['at a comma where no sentence ends', 'red, green, blue and white', 15, ['red, green,', 'blue and white']],
    ['at a space where there is no mark', 'red green blue white', 12, ['red green', 'blue white']],
    ['inside a word where there is no space', 'abcdefghij', 4, ['abcd', 'efgh', 'ij']],
    ['not inside a number', 'it costs 10,000.50 at most', 16, ['it costs', '10,000.50 at', 'most']],
    ['not at a sentence that leaves a snippet', 'Hi. abcdefgh, ijklmn opq', 20, ['Hi. abcdefgh,', 'ijklmn opq']],
  ])('%s', (_where, text, most, parts) => {
    expect(splitSpeechText(text, most)).toEqual(parts)
  })

  test('outside of signs of several characters', () => {
    const family = '👩‍👩‍👧'

    expect(splitSpeechText(`ab${family}${family}`, 9)).toEqual(['ab', family, family])
    expect(splitSpeechText(`abcde\u0301fg`, 5)).toEqual(['abcd', 'e\u0301fg'])
  })

  test('inside a sign that alone is above the limit, and never inside a character', () => {
    const parts = splitSpeechText(`e${'\u0301'.repeat(9)}👋👋`, 4)

    expect(parts.join('')).toBe(`e${'\u0301'.repeat(9)}👋👋`)
    expect(parts.every((part) => Buffer.from(part).toString() === part)).toBe(true)
  })

  test('without parts that are only white space', () => {
    expect(splitSpeechText(`one.${' '.repeat(50)}two.`, 10)).toEqual(['one.', 'two.'])
  })
})

test('whatever the text, its parts hold all of it but white space, in order, and each fits', () => {
  const pieces = fc.constantFrom(
    'a',
    'bc ',
    '. ',
    '。',
    '\n',
    '，',
    '👋',
    '👩‍👩‍👧',
    'e\u0301',
    '中',
    '3.14',
    '   ',
    '"',
    '\ud800',
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 120 }), fc.integer({ min: 2, max: 40 }), (list, most) => {
      const text = list.join('')
      const parts = splitSpeechText(text, most)
      expect(parts.join('').replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''))
      for (const part of parts) {
        let count = 0
        for (const character of part) count += (character.codePointAt(0) ?? 0) >= 0x2e80 ? 2 : 1
        expect(count).toBeLessThanOrEqual(most)
      }
    }),
    { numRuns: 500 },
  )
})
