import * as z from 'zod'
import { checksItems } from './schema-acceptance.ts'

/**
 * A list whose items are checked one after the other up to the first invalid one. `z.array(item)` continues and keeps an
 * issue for each item, so a body of megabytes of wrong items would take gigabytes, and more issues than a function call has
 * arguments for. Items are not changed: neither defaults nor transforms of `item` apply. As JSON Schema the list shows its
 * items. A list of more than `maxItems` is rejected before its items are read.
 */
export function listOf<Item extends z.ZodType>(
  item: Item,
  maxItems = Number.POSITIVE_INFINITY,
): z.ZodArray<z.ZodType<z.output<Item>>> {
  const { $schema: _draft, ...shown } = z.toJSONSchema(item, { unrepresentable: 'any' })
  const unchecked: z.ZodType<z.output<Item>> = z.any().meta(shown)
  const checkItems: z.core.CheckFn<z.output<Item>[]> = (context) => {
    if (context.issues.length > 0) return
    for (const [index, value] of context.value.entries()) {
      const result = item.safeParse(value)
      if (result.success) continue
      for (const issue of result.error.issues) {
        context.issues.push({ ...issue, path: [index, ...issue.path], input: value } as z.core.$ZodRawIssue)
      }
      return
    }
  }
  checksItems(checkItems, item)
  const list = z.array(unchecked)
  return (Number.isFinite(maxItems) ? list.max(maxItems) : list).check(checkItems)
}
