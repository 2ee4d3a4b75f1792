import ts from 'typescript'
import { parseSource, type SourceTree, visitNodes } from './source-tree.ts'

const TITLED = ['describe', 'test', 'it']

/** Titles of all suites and tests of a tree, as written; the fixed parts of template literals included. */
export function testTitles(tree: SourceTree): string[] {
  const titles: string[] = []
  for (const [path, text] of tree) {
    const source = parseSource(path, text)
    visitNodes(source, (node) => {
      if (!ts.isCallExpression(node) || !TITLED.includes(calledName(node.expression))) return
      const title = node.arguments[0]
      if (title === undefined) return
      if (ts.isStringLiteralLike(title) || ts.isTemplateExpression(title))
        titles.push(title.getText(source).slice(1, -1))
    })
  }
  return titles
}

/** `test` for `test(…)`, `test.concurrent(…)`, `test.each(table)(…)` and `suite.test(…)`. */
function calledName(callee: ts.Expression): string {
  if (ts.isIdentifier(callee)) return callee.text
  if (ts.isCallExpression(callee)) return calledName(callee.expression)
  if (!ts.isPropertyAccessExpression(callee)) return ''
  return TITLED.includes(callee.name.text) ? callee.name.text : calledName(callee.expression)
}

/** The ids that stand as a word in no title. */
export function idsWithoutTest(ids: readonly string[], titles: readonly string[]): string[] {
  const words = new Set(titles.flatMap((title) => title.split(/[^A-Za-z0-9]+/)))
  return ids.filter((id) => !words.has(id))
}
