import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

const PACKAGES = join(import.meta.dirname, '../../node_modules')

/** Literal of the types of an official SDK that a gateway has to recognise. */
export interface SdkLiteral {
  /** Member or type that has it: `type`, `finish_reason`. */
  readonly member: string
  readonly value: string
}

/** Members whose literals decide how a request or an answer is read. */
const MEMBERS = new Set(['type', 'finish_reason', 'stop_reason'])

/**
 * Returns the literals of the members `type`, `finish_reason` and `stop_reason` that a declaration file writes, each once. An enum
 * counts as a member by its name, if it is named in `enums`.
 */
export function sdkLiterals(file: string, enums: readonly string[] = []): readonly SdkLiteral[] {
  const text = readFileSync(join(PACKAGES, file), 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true)
  const found = new Map<string, SdkLiteral>()
  const add = (member: string, value: string): void => {
    found.set(`${member} ${value}`, { member, value })
  }
  const addOf = (member: string, type: ts.Node): void => {
    if (ts.isUnionTypeNode(type)) for (const part of type.types) addOf(member, part)
    else if (ts.isLiteralTypeNode(type) && ts.isStringLiteral(type.literal)) add(member, type.literal.text)
  }
  const visit = (node: ts.Node): void => {
    if (ts.isPropertySignature(node) && node.type !== undefined && ts.isIdentifier(node.name)) {
      if (MEMBERS.has(node.name.text)) addOf(node.name.text, node.type)
    } else if (ts.isTypeAliasDeclaration(node) && /StopReason$/.test(node.name.text)) addOf('stop_reason', node.type)
    else if (ts.isEnumDeclaration(node) && enums.includes(node.name.text)) {
      for (const { initializer } of node.members)
        if (initializer !== undefined && ts.isStringLiteral(initializer)) add(node.name.text, initializer.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return [...found.values()]
}
