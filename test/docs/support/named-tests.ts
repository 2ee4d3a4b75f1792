import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { ROOT } from './markdown.ts'

/** `check` is what the contract suites call their cases by. */
const TITLED = ['describe', 'test', 'it', 'check']

/**
 * Titles of the suites and tests of a file in their written form: `$` and braces of a template are kept. A title in a constant of the
 * file counts too.
 */
export function titlesIn(path: string): string[] {
  return titlesOf(readFileSync(join(ROOT, path), 'utf8'))
}

/** Returns the titles in the text of a file. */
export function titlesOf(text: string): string[] {
  const source = ts.createSourceFile('x.ts', text, ts.ScriptTarget.Latest, true)
  const constants = new Map<string, ts.Expression>()
  const named: ts.Expression[] = []
  visit(source, (node) => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer !== undefined)
      constants.set(node.name.text, node.initializer)
    if (ts.isCallExpression(node) && TITLED.includes(calledName(node.expression)) && node.arguments[0] !== undefined)
      named.push(node.arguments[0])
  })
  return named
    .map((title) => (ts.isIdentifier(title) ? constants.get(title.text) : title))
    .filter((title) => title !== undefined)
    .flatMap((title) => {
      if (ts.isStringLiteralLike(title)) return [title.text]
      return ts.isTemplateExpression(title) ? [title.getText(source).slice(1, -1)] : []
    })
}

function visit(node: ts.Node, look: (node: ts.Node) => void): void {
  look(node)
  ts.forEachChild(node, (child) => visit(child, look))
}

/** `test` for `test(…)`, `test.each(rows)(…)` and `describe.skipIf(…).each(rows)(…)`. */
function calledName(callee: ts.Expression): string {
  if (ts.isIdentifier(callee)) return callee.text
  if (ts.isCallExpression(callee) || ts.isPropertyAccessExpression(callee)) return calledName(callee.expression)
  return ''
}
