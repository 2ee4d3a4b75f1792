import { expect, test } from 'vitest'
import { type Preset, type PresetDialect, type PresetRule, presets } from '../../src/vendors/presets/presets.ts'
import { PRESET_MEMBERS } from '../../src/vendors/shared/preset.ts'
import { firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/vendors.md')
const ALL: readonly Preset[] = Object.values(presets)

const code = (text: string): string => `\`${text}\``

/** Returns cells in the form of `firstTable`. */
function withoutBackquotes(rows: readonly (readonly string[])[]): string[][] {
  return rows.map((row) => row.map((cell) => cell.replace(/^`([^`]*)`$/, '$1')))
}

function ruleText(field: string, rule: PresetRule): string {
  if (typeof rule === 'string') return `${code(field)} ${{ pass: 'passed', drop: 'dropped', refuse: 'refused' }[rule]}`
  if ('rename' in rule) return `${code(field)} as ${code(rule.rename)}`
  if ('atMost' in rule) return `${code(field)} at most ${rule.atMost}`
  if ('thinkingBudget' in rule) return `${code(field)} split into ${code('max_tokens')} and ${code('thinking_budget')}`
  return `${code(field)} ${Object.entries(rule.values)
    .map(([from, to]) => `${from} → ${to}`)
    .join(', ')}`
}

function dialectText(dialect: PresetDialect): string {
  const { fields = {}, toolChoice, messageMembers, toolIdLength, prefillMember, answersTools, typedBranches } = dialect
  const texts = Object.entries(fields).map(([field, rule]) => ruleText(field, rule))
  if (toolChoice?.required !== undefined) texts.push(`${code('tool_choice')} required → ${toolChoice.required}`)
  if (toolChoice?.cutsNamed === true) texts.push(`a named ${code('tool_choice')} cuts ${code('tools')}`)
  if (toolChoice?.isIgnored === true) texts.push(`${code('tool_choice')} cuts ${code('tools')}, dropped`)
  if (messageMembers !== undefined) texts.push('other members of messages dropped')
  if (toolIdLength !== undefined) texts.push(`ids of tool calls hashed to ${toolIdLength} characters`)
  if (prefillMember !== undefined) texts.push(`a last assistant turn gets ${code(prefillMember)}`)
  if (answersTools === true) texts.push('a user turn after results of tools gets an assistant turn before it')
  if (typedBranches === true) texts.push(`${code('type')} next to ${code('anyOf')} moved into its branches`)
  return texts.join('; ')
}

function reasoningText({ reasoning }: PresetDialect): string {
  if (reasoning === undefined || reasoning.back === 'never') return 'removed'
  const turns = reasoning.back === 'tool-calls' ? ', in turns with tool calls' : ''
  return `${code(reasoning.as ?? 'reasoning_content')}${turns}${reasoning.evenEmpty === true ? ', even empty' : ''}`
}

test('the page lists every preset with its address, key and offers', () => {
  const expected = ALL.map((preset) => [
    code(preset.id),
    preset.name,
    code(preset.baseURL),
    preset.needsKey ? preset.keyVariables.map(code).join(', ') : `none, or ${preset.keyVariables.map(code).join(', ')}`,
    preset.serves.join(', '),
  ])

  expect(firstTable(section(page, 'Presets')).slice(1)).toEqual(withoutBackquotes(expected))
})

test('the page lists every member of a preset', () => {
  const [, ...rows] = firstTable(section(page, 'A preset of your own'))
  const named = rows.flatMap(([members = '']) => members.replaceAll('`', '').split(', '))

  expect(named.sort()).toEqual(Object.keys(PRESET_MEMBERS).sort())
})

test('the page says what each preset does with fields and with reasoning of earlier turns', () => {
  const withChat = ALL.filter(({ serves }) => serves.includes('chat'))
  const expected = withChat.map((preset) => [code(preset.id), dialectText(preset), reasoningText(preset)])

  expect(firstTable(section(page, 'Request fields')).slice(1)).toEqual(withoutBackquotes(expected))
})

test('the page says which servers have Responses, and what becomes of their follow-ups and fields', () => {
  const expected = ALL.filter(({ serves }) => serves.includes('responses')).map(({ id, responses = {} }) => [
    code(id),
    responses.keepsAnswers === true ? 'name the previous answer, which the server stores' : 'contain the whole history',
    dialectText({ fields: responses.fields ?? {} }),
  ])

  expect(firstTable(section(page, 'Responses')).slice(1)).toEqual(withoutBackquotes(expected))
})

test('names the servers on the page that accept images as bytes, and those that know the role developer', () => {
  const names = (test: (preset: Preset) => boolean) => ALL.filter(test).map(({ name }) => name)

  for (const name of names(({ takesImageUrls }) => takesImageUrls === false))
    expect(section(page, 'Private addresses').replaceAll(/\s+/g, ' ')).toContain(name)
  for (const name of names(({ takesDeveloperRole }) => takesDeveloperRole === true))
    expect(section(page, 'Request fields')).toContain(name)
})
